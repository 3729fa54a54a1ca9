package judge;

/** One test against a broker: its result is printed as JSON and checked by the Python test. */
@FunctionalInterface
interface Scenario {
    Object run(Clients clients, String topic) throws Exception;
}
