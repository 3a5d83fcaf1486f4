// Command porcupine checks a history of scrip-conformance --exactly-once by Porcupine.
//
// It shares no code with the kit. The README of the kit documents the history.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A call is a line of the history.
type call struct {
	Batch     int      `json:"batch"`
	Do        string   `json:"do"`
	Variant   string   `json:"variant"`
	Reference string   `json:"reference"`
	Voucher   int      `json:"voucher"`
	Pin       string   `json:"pin"`
	Quantity  int      `json:"quantity"`
	Amount    *float64 `json:"amount"`
	From      int64    `json:"from"`
	To        *int64   `json:"to"`
	Code      string   `json:"code"`
	Replayed  bool     `json:"replayed"`
	Shown     *float64 `json:"shown"`
	Ids       []string `json:"ids"`
	EndedAt   string   `json:"endedAt"`
}

// Whether the call may have had an effect that its answer does not show.
func (c call) isOpen() bool { return c.Code == "" || c.Code == "91" || c.Code == "96" }

func (c call) amount() float64 {
	if c.Amount == nil {
		return 0
	}
	return *c.Amount
}

func (c call) debits() bool { return c.Do == "activate" || (c.Do == "generate" && c.Amount != nil) }

func (c call) cost() float64 {
	if c.Do == "generate" {
		return c.amount() * float64(c.Quantity)
	}
	return c.amount()
}

type voucher struct {
	Active  bool
	Balance float64
	Wrong   int
}

type entry struct {
	Voucher   int
	Amount    float64
	Updated   bool
	NewAmount float64
}

// The state of a batch.
type state struct {
	Order    *call
	Vouchers []voucher
	Entries  map[string]entry
	Ids      map[string]string
}

func (s state) clone() state {
	return state{s.Order, slices.Clone(s.Vouchers), maps.Clone(s.Entries), maps.Clone(s.Ids)}
}

// The answer that the model gives.
type answer struct {
	code     string
	replayed bool
	shown    *float64
	ids      []string
}

func success(replayed bool, shown *float64, ids ...string) answer {
	return answer{"00", replayed, shown, ids}
}

func refusal(code string) answer { return answer{code: code} }

// act carries a call out in a state, which it changes.
func act(s *state, c call) answer {
	switch c.Do {
	case "generate":
		return generate(s, c)
	case "activate":
		return activate(s, c)
	case "redeem":
		return redeem(s, c)
	case "update":
		return update(s, c)
	case "balance":
		return balance(s, c)
	default:
		return lookUp(s, c)
	}
}

func generate(s *state, c call) answer {
	if o := s.Order; o != nil {
		if o.Reference != c.Reference || o.Quantity != c.Quantity || !reflect.DeepEqual(o.Amount, c.Amount) {
			return refusal("94")
		}
		return success(true, c.Amount, "batch", "vouchers")
	}
	s.Order = &call{Reference: c.Reference, Quantity: c.Quantity, Amount: c.Amount}
	for range c.Quantity {
		s.Vouchers = append(s.Vouchers, voucher{Active: c.Amount != nil, Balance: c.amount()})
	}
	return success(false, c.Amount, "batch", "vouchers")
}

func activate(s *state, c call) answer {
	name := "activate " + c.Reference
	if c.Voucher >= len(s.Vouchers) {
		return refusal("14")
	}
	v := &s.Vouchers[c.Voucher]
	if known, ok := s.Entries[name]; ok {
		if known.Voucher != c.Voucher || known.Amount != c.amount() {
			return refusal("94")
		}
		return success(true, c.Amount, name)
	}
	if v.Active {
		return refusal("41")
	}
	v.Active, v.Balance = true, c.amount()
	s.Entries[name] = entry{Voucher: c.Voucher, Amount: c.amount()}
	return success(false, c.Amount, name)
}

// checkPin counts a wrong PIN. It returns the refusal, or nothing for a right PIN.
func checkPin(v *voucher, c call) string {
	if v.Wrong >= 5 {
		return "75"
	}
	if c.Pin == "right" {
		v.Wrong = 0
		return ""
	}
	v.Wrong++
	return "55"
}

func redeem(s *state, c call) answer {
	name := "redeem " + c.Reference
	if c.Voucher >= len(s.Vouchers) {
		return refusal("14")
	}
	v := &s.Vouchers[c.Voucher]
	known, isKnown := s.Entries[name]
	if isKnown && (known.Voucher != c.Voucher || known.Amount != c.amount()) {
		return refusal("94")
	}
	if code := checkPin(v, c); code != "" {
		return refusal(code)
	}
	switch {
	case isKnown:
		return success(true, c.Amount, name)
	case !v.Active:
		return refusal("40")
	case v.Balance == 0:
		return refusal("42")
	case v.Balance < c.amount():
		return refusal("51")
	}
	v.Balance -= c.amount()
	s.Entries[name] = entry{Voucher: c.Voucher, Amount: c.amount()}
	return success(false, c.Amount, name)
}

func update(s *state, c call) answer {
	name := "redeem " + c.Reference
	original, ok := s.Entries[name]
	if !ok {
		return refusal("60")
	}
	code := "58"
	if !original.Updated {
		v := &s.Vouchers[original.Voucher]
		if v.Balance+original.Amount < c.amount() {
			return refusal("51")
		}
		v.Balance += original.Amount - c.amount()
		original.Updated, original.NewAmount = true, c.amount()
		s.Entries[name] = original
		code = "00"
	}
	ids := []string{name, "redeem CANCEL-" + c.Reference}
	if original.NewAmount > 0 {
		ids = append(ids, "redeem NEW-"+c.Reference)
	}
	return answer{code, false, &original.NewAmount, ids}
}

func balance(s *state, c call) answer {
	if c.Voucher >= len(s.Vouchers) {
		return refusal("14")
	}
	v := &s.Vouchers[c.Voucher]
	if code := checkPin(v, c); code != "" {
		return refusal(code)
	}
	shown := v.Balance
	return success(false, &shown)
}

func lookUp(s *state, c call) answer {
	for _, operation := range []string{"redeem ", "activate "} {
		name := operation + c.Reference
		found, ok := s.Entries[name]
		if !ok {
			continue
		}
		if !found.Updated {
			return success(false, &found.Amount, name)
		}
		if found.NewAmount > 0 {
			return success(false, &found.NewAmount, "redeem NEW-"+c.Reference)
		}
		break
	}
	if c.Variant == "a" {
		return refusal("60")
	}
	return refusal("99")
}

func withoutTime(id string) string {
	id, _, _ = strings.Cut(id, " ")
	return id
}

// learn keeps the ids of an answer. It returns false if others were shown before.
func learn(s *state, names []string, shown []string) bool {
	if len(names) != len(shown) {
		return false
	}
	for at, name := range names {
		for other, id := range s.Ids {
			if (other == name) != (id == shown[at]) || (other != name && withoutTime(id) == withoutTime(shown[at])) {
				return false
			}
		}
		s.Ids[name] = shown[at]
	}
	return true
}

func step(before any, input any, _ any) (bool, any) {
	c := input.(call)
	prior := before.(state)
	s := prior.clone()
	a := act(&s, c)
	if c.isOpen() {
		return true, s
	}
	if slices.Contains([]string{"13", "50", "61"}, c.Code) && c.debits() && a.code == "00" && !a.replayed {
		return true, prior
	}
	isRight := a.code == c.Code && a.replayed == c.Replayed && reflect.DeepEqual(a.shown, c.Shown)
	return isRight && learn(&s, a.ids, c.Ids), s
}

var batches = porcupine.Model{
	Init:  func() any { return state{Entries: map[string]entry{}, Ids: map[string]string{}} },
	Step:  step,
	Equal: func(one, other any) bool { return reflect.DeepEqual(one, other) },
}

// A debit of the float. Copies under one reference are one debit.
type debit struct {
	cost    float64
	refused bool
}

// floatOf models the float as a register that begins with all that was paid.
func floatOf(paid float64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return paid },
		Step: func(before any, input any, _ any) (bool, any) {
			left, d := before.(float64), input.(debit)
			if d.refused {
				return left < d.cost, left
			}
			// An open debit that there was no money for has not happened.
			return true, math.Max(left-d.cost, 0)
		},
	}
}

// debitsOf returns the debits of the float, and how much was certainly paid.
func debitsOf(calls []call) ([]porcupine.Operation, float64) {
	type paid struct {
		from, to int64
		cost     float64
		certain  bool
	}
	all := map[string]paid{}
	var operations []porcupine.Operation
	for _, c := range calls {
		if !c.debits() {
			continue
		}
		if c.Code == "50" {
			operations = append(operations, porcupine.Operation{Input: debit{c.cost(), true}, Call: c.From, Return: *c.To})
		}
		if c.Code != "00" && !c.isOpen() {
			continue
		}
		key := fmt.Sprint(c.Do, " ", c.Reference, " ", c.cost())
		p, ok := all[key]
		if !ok {
			p = paid{from: c.From, to: math.MaxInt64, cost: c.cost()}
		}
		p.from = min(p.from, c.From)
		if c.Code == "00" {
			p.certain, p.to = true, min(p.to, *c.To)
		}
		all[key] = p
	}
	sum := 0.0
	for _, p := range all {
		if p.certain {
			sum += p.cost
		}
		operations = append(operations, porcupine.Operation{Input: debit{p.cost, false}, Call: p.from, Return: p.to})
	}
	return operations, sum
}

func read(path string) ([]call, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var calls []call
	isWhole := false
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var c call
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, err
		}
		isWhole = isWhole || c.EndedAt != ""
		// The first and the last line have a text or a number of calls in place of a call.
		if c.Do != "" && c.Code != "97" {
			calls = append(calls, c)
		}
	}
	if !isWhole {
		return nil, fmt.Errorf("the last line of the history is missing")
	}
	return calls, lines.Err()
}

// firstUnexplained returns the first batch that the model does not explain, or -1.
func firstUnexplained(calls []call, patience time.Duration) int {
	byBatch := map[int][]porcupine.Operation{}
	for _, c := range calls {
		end := int64(math.MaxInt64)
		if !c.isOpen() {
			end = *c.To
		}
		byBatch[c.Batch] = append(byBatch[c.Batch], porcupine.Operation{Input: c, Call: c.From, Return: end})
	}
	for _, batch := range slices.Sorted(maps.Keys(byBatch)) {
		if porcupine.CheckOperationsTimeout(batches, byBatch[batch], patience) != porcupine.Ok {
			return batch
		}
	}
	return -1
}

func check(path string) error {
	const patience = time.Minute
	calls, err := read(path)
	if err != nil {
		return err
	}
	if batch := firstUnexplained(calls, patience); batch >= 0 {
		return fmt.Errorf("no order explains the answers of batch %d", batch)
	}
	debits, paid := debitsOf(calls)
	if porcupine.CheckOperationsTimeout(floatOf(paid), debits, patience) != porcupine.Ok {
		return fmt.Errorf("the float paid more than there was")
	}
	fmt.Printf("Porcupine explains all %d calls\n", len(calls))
	return nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . HISTORY")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
