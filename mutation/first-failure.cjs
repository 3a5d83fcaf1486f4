/**
 * A reporter of Node's test runner that ends the process at the first failure, in whatever test of a test
 * it is: a mutant that is found out needs no second witness.
 */
module.exports = async function* firstFailure(source) {
  for await (const { type, data } of source) {
    if (type === 'test:fail' || (type === 'test:complete' && !data.details.passed)) process.exit(1);
  }
  yield '';
};
