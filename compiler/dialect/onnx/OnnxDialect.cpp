//===- OnnxDialect.cpp - registration of the onnx dialect -----------------===//
//
// One operation for each schema of the onnx package. It goes through OperationName::Impl, which is half internal to MLIR, because
// DynamicOpDefinition has no traits and never lets two equal operations be merged. Keep everything that touches Impl in this
// file.
//
//===----------------------------------------------------------------------===//
#include "compiler/dialect/onnx/OnnxDialect.h"

#include "compiler/dialect/onnx/OnnxOps.h"
#include "compiler/dialect/onnx/Schemas.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"

#include "compiler/dialect/onnx/OnnxDialect.cpp.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/onnx/OnnxOps.cpp.inc"

using namespace mlir;

namespace ogc::onnx {
namespace {

using ::onnx::OpSchema;

struct PureModel : MemoryEffectOpInterface::FallbackModel<PureModel> {
  void getEffects(Operation *, SmallVectorImpl<MemoryEffects::EffectInstance> &) const {}
};

struct SpeculatableModel : ConditionallySpeculatable::FallbackModel<SpeculatableModel> {
  Speculation::Speculatability getSpeculatability(Operation *) const { return Speculation::Speculatable; }
};

bool isCommutative(StringRef type) {
  static const llvm::StringSet<> types = {"Add", "Mul", "And", "Or", "Xor", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor"};
  return types.contains(type);
}

LogicalResult verifyCount(Operation *op, StringRef what, int64_t count, int64_t low, int64_t high) {
  if (count >= low && count <= high)
    return success();
  auto diag = op->emitOpError("has ") << count << " " << what << ", expected ";
  if (high == std::numeric_limits<int>::max())
    return diag << "at least " << low;
  return low == high ? diag << low : diag << low << " to " << high;
}

LogicalResult verifyAgainstSchema(const OpSchema &schema, Operation *op) {
  if (failed(verifyCount(op, "operands", op->getNumOperands(), schema.min_input(), schema.max_input())) ||
      failed(verifyCount(op, "results", op->getNumResults(), schema.min_output(), schema.max_output())))
    return failure();
  for (const auto &[name, attribute] : schema.attributes())
    if (attribute.required && attribute.type != ::onnx::AttributeProto::GRAPH && !op->hasAttr(name))
      return op->emitOpError("lacks attribute '") << name << "'";
  if (failed(verifyCount(op, "regions", op->getNumRegions(), countBodies(schema), countBodies(schema))))
    return failure();
  for (Value operand : op->getOperands())
    if (!isa<TensorType, NoneType>(operand.getType()))
      return op->emitOpError("has an operand of type ") << operand.getType() << ", expected a tensor or none";
  for (Value result : op->getResults())
    if (!isa<TensorType>(result.getType()))
      return op->emitOpError("has a result of type ") << result.getType() << ", expected a tensor";
  return success();
}

/// An operation described by a schema. It has no properties: all attributes are discardable ones.
struct SchemaImpl final : OperationName::Impl {
  SchemaImpl(StringRef name, Dialect *dialect, TypeID id, const OpSchema &schema)
      : Impl(name, dialect, id, mlir::detail::InterfaceMap()), schema(schema) {}

  LogicalResult foldHook(Operation *, ArrayRef<Attribute>, SmallVectorImpl<OpFoldResult> &) final { return failure(); }
  void getCanonicalizationPatterns(RewritePatternSet &, MLIRContext *) final {}
  bool hasTrait(TypeID id) final {
    if (id == TypeID::get<OpTrait::IsCommutative>())
      return isCommutative(schema.Name());
    // Operators with bodies are as pure as what is in them.
    if (id == TypeID::get<OpTrait::HasRecursiveMemoryEffects>())
      return countBodies(schema) != 0;
    return false;
  }
  OperationName::ParseAssemblyFn getParseAssemblyFn() final {
    return [](OpAsmParser &parser, OperationState &) { return parser.emitError(parser.getNameLoc(), "has no custom form"); };
  }
  void populateDefaultAttrs(const OperationName &, NamedAttrList &) final {}
  void printAssembly(Operation *op, OpAsmPrinter &printer, StringRef) final { printer.printGenericOp(op); }
  LogicalResult verifyInvariants(Operation *op) final { return verifyAgainstSchema(schema, op); }
  LogicalResult verifyRegionInvariants(Operation *) final { return success(); }
  std::optional<Attribute> getInherentAttr(Operation *, StringRef) final { return std::nullopt; }
  void setInherentAttr(Operation *op, StringAttr name, Attribute value) final { op->setDiscardableAttr(name, value); }
  void populateInherentAttrs(Operation *, NamedAttrList &) final {}
  LogicalResult verifyInherentAttrs(OperationName, NamedAttrList &, function_ref<InFlightDiagnostic()>) final {
    return success();
  }
  int getOpPropertyByteSize() final { return 0; }
  void initProperties(OperationName, OpaqueProperties, OpaqueProperties) final {}
  void deleteProperties(OpaqueProperties) final {}
  void populateDefaultProperties(OperationName, OpaqueProperties) final {}
  LogicalResult setPropertiesFromAttr(OperationName, OpaqueProperties, Attribute, function_ref<InFlightDiagnostic()>) final {
    return failure();
  }
  Attribute getPropertiesAsAttr(Operation *) final { return {}; }
  void copyProperties(OpaqueProperties, OpaqueProperties) final {}
  bool compareProperties(OpaqueProperties, OpaqueProperties) final { return true; }
  llvm::hash_code hashProperties(OpaqueProperties) final { return {}; }

  const OpSchema &schema;
};

/// Type IDs are the same for every context of the process.
TypeID schemaTypeID(size_t index) {
  static TypeIDAllocator allocator;
  static std::vector<TypeID> ids;
  while (ids.size() <= index)
    ids.push_back(allocator.allocate());
  return ids[index];
}

} // namespace

void OnnxDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/onnx/OnnxOps.cpp.inc"
      >();
  registerSchemas();
}

void OnnxDialect::registerSchemas() {
  size_t index = 0;
  for (const OpSchema *schema : newestSchemas()) {
    std::string name = "onnx." + qualifiedName(*schema);
    RegisteredOperationName::insert(std::make_unique<SchemaImpl>(name, this, schemaTypeID(index++), *schema), {});
    std::optional<RegisteredOperationName> registered = RegisteredOperationName::lookup(name, getContext());
    if (!registered || isRandom(*schema) || countBodies(*schema))
      continue;
    registered->attachInterface<PureModel>();
    registered->attachInterface<SpeculatableModel>();
  }
}

Operation *OnnxDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements, StringAttr());
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValueAttr(); }

LogicalResult ConstantOp::verify() {
  if (getValue().getType() != getType())
    return emitOpError("has type ") << getType() << ", but its value has type " << getValue().getType();
  return success();
}

} // namespace ogc::onnx
