/**
 * Loaded before a service under test: its clock can be set, as an operator or NTP may. The time of the
 * process stays its own; what it takes for the time of day is moved by as many milliseconds as its parent
 * says.
 */
const RealDate = Date;
let aheadMs = 0;

process.on('message', (message: { aheadMs: number }) => {
  aheadMs = message.aheadMs;
});
// The channel alone keeps no process alive.
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
