//===- KernelRunner.h - compile and run kernels given as text -------------===//
#ifndef OGC_TEST_UNIT_KERNELRUNNER_H
#define OGC_TEST_UNIT_KERNELRUNNER_H

#include "compiler/codegen/cpu/CompileKernels.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ogc::test {

using Floats = std::vector<float>;

/// Values between -1 and 1 that are multiples of 1/64, so that short sums of products are exact in any order.
inline Floats numbers(int64_t count, unsigned seed) {
  Floats values(count);
  uint64_t state = seed * 2654435761u + 1;
  for (float &value : values) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    value = float(int64_t(state >> 57) - 64) / 64;
  }
  return values;
}

/// The kernels of one module, compiled and loaded.
class Kernels {
public:
  explicit Kernels(const std::string &text, const std::string &cpu = "host") {
    mlir::DialectRegistry registry;
    codegen::registerCpuCodegenDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module)
      return;
    codegen::CpuOptions options;
    options.target = *codegen::CpuTarget::named(cpu);
    mlir::FailureOr<codegen::CpuObject> compiled = codegen::compileKernels(*module, options);
    if (mlir::failed(compiled))
      return;
    object = *compiled;
    file = memfd_create("kernels", MFD_CLOEXEC);
    if (write(file, object.image.data(), object.image.size()) != ssize_t(object.image.size()))
      return;
    handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  ~Kernels() {
    if (handle)
      dlclose(handle);
    if (file >= 0)
      close(file);
  }

  bool loaded() const { return handle; }

  /// Runs a kernel in two parts, the later units first.
  void run(const std::string &name, std::vector<void *> buffers) {
    for (const codegen::CpuEntry &entry : object.kernels) {
      if (entry.symbol != name)
        continue;
      auto call = reinterpret_cast<void (*)(void *const *, int64_t, int64_t)>(dlsym(handle, name.c_str()));
      ASSERT_TRUE(call);
      int64_t middle = entry.units / 2;
      call(buffers.data(), middle, entry.units);
      call(buffers.data(), 0, middle);
      return;
    }
    FAIL() << "no kernel " << name;
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  codegen::CpuObject object;

private:
  int file = -1;
  void *handle = nullptr;
};

inline void expectNear(const Floats &actual, const Floats &expected, float tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance * (1 + std::fabs(expected[i]))) << "element " << i;
}

} // namespace ogc::test

#endif
