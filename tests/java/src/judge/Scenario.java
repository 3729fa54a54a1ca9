package judge;

/** One story told to a broker: what it gives back is printed as JSON and judged by the Python test. */
@FunctionalInterface
interface Scenario {
    Object run(Clients clients, String topic) throws Exception;
}
