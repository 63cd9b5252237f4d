// The same as run_bundle.c with the C++ wrapper, and a second run that changes an input in place.
#include "ogc/runtime.hpp"

#include <algorithm>
#include <cstdio>

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  try {
    ogc::rt::Bundle bundle(argv[1]);
    ogc::rt::Engine engine(bundle, argc > 2 ? argv[2] : "cpu");
    ogc::rt::Context context(engine);
    std::printf("graph '%s' on %s\n", bundle.graphId(0).c_str(), engine.deviceName().c_str());

    std::vector<std::vector<char>> inputs, outputs;
    for (const ogc_tensor &tensor : bundle.inputs(0))
      inputs.emplace_back(tensor.bytes);
    for (const ogc_tensor &tensor : bundle.outputs(0))
      outputs.emplace_back(tensor.bytes);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!bundle.isState(0, i)) // a state is the context's: Context::writeState
        context.bindInput(0, i, inputs[i].data(), inputs[i].size());
    for (size_t i = 0; i < outputs.size(); ++i)
      context.bindOutput(0, i, outputs[i].data(), outputs[i].size());

    context.run(0);
    std::vector<std::vector<char>> first = outputs;
    if (!inputs.empty() && bundle.inputs(0)[0].dtype == OGC_FLOAT32) {
      float *values = reinterpret_cast<float *>(inputs[0].data());
      std::fill(values, values + inputs[0].size() / sizeof(float), 1.0f);
    }
    context.run(0); // reads the bound buffer again
    std::printf("the outputs %s\n", outputs == first ? "are the same" : "differ");
  } catch (const ogc::Error &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
