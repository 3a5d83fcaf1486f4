/**
 * Loaded before a service under test, so that its clock can be set, as an operator or NTP may do. The parent
 * process sends by how many milliseconds the time of day is ahead. Monotonic time does not change.
 */
const RealDate = Date;
let aheadMs = 0;

process.on('message', (message: { aheadMs: number }) => {
  aheadMs = message.aheadMs;
});
// The channel must not keep the process alive.
process.channel?.unref();

globalThis.Date = new Proxy(RealDate, {
  construct(target, values, newTarget) {
    const given = values.length > 0 ? values : [RealDate.now() + aheadMs];
    return Reflect.construct(target, given, newTarget);
  },
  get(target, name, receiver) {
    return name === 'now' ? () => RealDate.now() + aheadMs : Reflect.get(target, name, receiver);
  },
});
