//===- PulledOperands.cpp - what a template asks for by element, as a functor ===//
#include "compiler/codegen/cuda/PulledOperands.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <set>

using namespace mlir;

namespace ogc::codegen {

namespace {

class FunctorPrinter {
public:
  explicit FunctorPrinter(kern::KernelOp kernel)
      : kernel(kernel), types(needsWideIndex(kernel)), index(types.name(IndexType::get(kernel.getContext()))),
        constant(constantArguments(kernel)) {}

  LogicalResult addElement(const PulledElement &element);
  LogicalResult addStore(unsigned number);
  PulledOperands finish(unsigned inputs);

private:
  static constexpr const char *prefix = "  __device__ __forceinline__ ";

  LogicalResult print(KernelBody &body, CudaPrinter &printer);
  std::string parameters(KernelBody &body, CudaPrinter &printer, unsigned count) {
    std::string text;
    for (unsigned i = 0; i < count; ++i) {
      printer.bind(body.extra(i), "i" + std::to_string(i));
      text += (i ? ", " : "") + index + " i" + std::to_string(i);
    }
    return text;
  }

  kern::KernelOp kernel;
  CudaTypes types;
  std::string index;
  SmallVector<bool> constant;
  std::string methods, stores;
  std::map<unsigned, std::string> members; ///< the type of each buffer that is used
};

} // namespace

LogicalResult FunctorPrinter::print(KernelBody &body, CudaPrinter &printer) {
  for (auto [i, buffer] : llvm::enumerate(body.buffers())) {
    unsigned number = static_cast<unsigned>(i);
    bool isInput = number < body.numInputs();
    if (isInput && constant[number]) // what the kernel before has written must not be loaded in front of the wait
      printer.markReadOnly(buffer);
    if (buffer.use_empty())
      continue;
    printer.bind(buffer, "p" + std::to_string(number));
    members[number] = std::string(isInput ? "const " : "") + types.name(cast<MemRefType>(buffer.getType()).getElementType());
  }
  return printer.printBlock(body.getBlock());
}

LogicalResult FunctorPrinter::addElement(const PulledElement &element) {
  MLIRContext *context = kernel.getContext();
  // The element's type is known when it has been computed: once for that, once for the text.
  auto compute = [&](KernelBody &body) {
    SmallVector<Value> indices;
    for (unsigned i = 0; i < element.numIndices; ++i)
      indices.push_back(body.extra(i));
    return element.emit(body, indices);
  };
  SmallVector<Type> extra(element.numIndices, IndexType::get(context));
  Type type;
  {
    KernelBody body(kernel, extra);
    Value value = compute(body);
    if (!value)
      return failure();
    type = value.getType();
  }
  extra.push_back(MemRefType::get({1}, type));
  KernelBody body(kernel, extra);
  Location loc = kernel.getLoc();
  Value value = compute(body), zero = body.getEmitter().indices().constant(loc, 0);
  memref::StoreOp::create(body.getBuilder(), loc, value, body.extra(element.numIndices), zero);
  body.finish();
  std::string text, name = types.name(type);
  llvm::raw_string_ostream os(text);
  CudaPrinter printer(os, types, 2);
  std::string list = parameters(body, printer, element.numIndices);
  printer.bind(body.extra(element.numIndices), "r");
  if (failed(print(body, printer)))
    return failure();
  methods +=
      prefix + name + " " + element.name + "(" + list + ") const {\n    " + name + " r[1];\n" + text + "    return r[0];\n  }\n";
  return success();
}

LogicalResult FunctorPrinter::addStore(unsigned number) {
  Value result = kernel.getBody().front().getTerminator()->getOperand(number);
  auto type = cast<RankedTensorType>(result.getType());
  KernelBody body(kernel, IndexType::get(kernel.getContext()));
  Location loc = kernel.getLoc();
  SmallVector<Value> at = body.getEmitter().indices().delinearize(loc, body.extra(0), type.getShape());
  Value value = body.getEmitter().emit(result, at);
  if (!value)
    return failure();
  memref::StoreOp::create(body.getBuilder(), loc, value, body.output(number), at);
  body.finish();
  std::string text, name = "store" + std::to_string(number);
  llvm::raw_string_ostream os(text);
  CudaPrinter printer(os, types, 2);
  std::string list = parameters(body, printer, 1);
  if (failed(print(body, printer)))
    return failure();
  methods += prefix + ("void " + name) + "(" + list + ") const {\n" + text + "  }\n";
  stores +=
      "    for (" + index + " i = first; i < " + std::to_string(type.getNumElements()) + "; i += step)\n      " + name + "(i);\n";
  return success();
}

PulledOperands FunctorPrinter::finish(unsigned inputs) {
  if (methods.empty())
    return {"", "ogc::NoOperands{}"};
  std::string name = kernel.getSymName().str() + "_Operands", fields, binds;
  PulledOperands result;
  for (auto &[number, type] : members) {
    std::string pointer = "p" + std::to_string(number);
    fields += "  " + type + " *" + pointer + ";\n";
    result.construct += (result.construct.empty() ? "" : ", ") + pointer;
    if (number >= inputs || !constant[number])
      binds += "    " + pointer + " = ogc::afterWait(" + pointer + ");\n";
  }
  result.construct = name + "{" + result.construct + "}";
  result.functor = "struct " + name + " {\n" + fields + prefix + "void bind() {\n" + binds + "  }\n" + methods + prefix +
                   "void store(int first, int step) const {\n" + stores + "  }\n};\n";
  return result;
}

FailureOr<PulledOperands> printPulledOperands(kern::KernelOp kernel, Operation *anchor, ArrayRef<PulledElement> elements) {
  FunctorPrinter printer(kernel);
  for (const PulledElement &element : elements)
    if (failed(printer.addElement(element)))
      return failure();
  for (auto [number, result] : llvm::enumerate(kernel.getBody().front().getTerminator()->getOperands()))
    if (!kern::dependsOn(result, anchor) && failed(printer.addStore(static_cast<unsigned>(number))))
      return failure();
  return printer.finish(kernel.getBody().getNumArguments());
}

} // namespace ogc::codegen
