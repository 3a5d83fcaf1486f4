/**
 * A reporter of Node's test runner that ends the process at the first failure, also of a nested test: one
 * failure is enough to kill a mutant.
 */
module.exports = async function* firstFailure(source) {
  for await (const { type, data } of source) {
    if (type === 'test:fail' || (type === 'test:complete' && !data.details.passed)) process.exit(1);
  }
  yield '';
};
