"""The part of gpu_test.py about models of the shared folder that it does not time one by one: every call of test/e2e/model_calls.py, right on a GPU.

Each model is one bundle with a graph ID per call. Compilation and references may run in any thread; `check` uses the GPU.
"""
import harness
import model_calls

# llama1b_decode has 6 GB of weights and is left to --large.
MODELS = ["bert_base_dyn", "bert_tiny_legacy_dyn", "llama_tiny_gqa", "lstm_gru", "mlp_nbits4", "mobilenet_v2_qdq"]
LARGE = ["llama1b_decode"]
# Values may be one step of their scale away where onnxruntime sums in another order. In fp32 alone: the steps of this model's scales (1e-9) are below
# what 16 bits hold.
QUANTIZED, QUANTIZED_TOLERANCE = ["mobilenet_v2_qdq"], 1e-3


class Case:
    """One model in one precision: `failures` are reasons in words, `facts` what the tables show."""

    def __init__(self, model, precision):
        self.model, self.precision, self.failures, self.facts = model, precision, [], {}

    def fail(self, reason):
        self.failures.append(reason)
        print(f"FAIL {self.model} {self.precision}: {reason}", flush=True)


class Calls(Case):
    """Every call of one model in one precision."""

    def __init__(self, session, model, precision, tolerance):
        super().__init__(model, precision)
        self.session = session
        self.tolerance = QUANTIZED_TOLERANCE if model in QUANTIZED else tolerance
        self.bundle = session.work / f"calls-{model}-{precision}.ogc"

    def compile(self):
        given = self.session.given[self.model]
        several = {"shapes": model_calls.named_shapes(given)} if len(given) > 1 else {}
        self.session.ogc.compile(harness.shared_model(self.model), self.bundle, target=f"{self.session.arch},cpu", precision=self.precision, **several)

    def check(self):
        """Runs every call; the node count and time are those of the last."""
        graphs = self.session.ogc.inspect(self.bundle)["graphs"]
        errors = []
        for graph, inputs, expected in zip(graphs, self.session.given[self.model], self.session.calls_expected[self.model], strict=True):
            actual = self.session.ogc.run(self.bundle, inputs, device="cuda:0", graph=graph["id"])
            errors += [harness.relative_error(actual[name], value) for name, value in expected.items()]
        self.facts.update(calls=len(graphs), error=max(errors), nodes=graphs[-1]["nodes"]["total"])
        if not self.facts["error"] <= self.tolerance:
            self.fail(f"relative error {self.facts['error']:.2e}, allowed {self.tolerance}")
        times = self.session.ogc.bench(self.bundle, "--graph", graphs[-1]["id"], device="cuda:0", iterations=self.session.options.iterations)
        self.facts["device_us"] = times["device_us"]["p50"]

    def row(self):
        if "device_us" not in self.facts:
            return f"| {self.model} | {self.precision} | failed: {self.failures[0].strip().splitlines()[-1] if self.failures else ''} | | | |"
        facts = self.facts
        verdict = "" if not self.failures else ", WRONG"
        return f"| {self.model} | {self.precision} | {facts['calls']} | {facts['error']:.1e}{verdict} | {facts['nodes']} | {facts['device_us']:.0f} |"


def cases(session, models, precisions, tolerances):
    """The cases of the models, large ones in fp16 alone."""
    for model in models:
        of_model = ["fp16"] if model in LARGE else ["fp32"] if model in QUANTIZED else precisions
        yield from (Calls(session, model, precision, tolerances[precision]) for precision in of_model)


def prepare(session, model):
    """Weights, inputs and references of a model."""
    session.given[model] = model_calls.calls(model)
    session.calls_expected[model] = [harness.reference(harness.shared_model(model), inputs) for inputs in session.given[model]]


def table(cases):
    yield "| model | precision | calls | largest error | nodes of the last | device µs p50 of the last |"
    yield "|---|---|---|---|---|---|"
    yield from (case.row() for case in cases)
