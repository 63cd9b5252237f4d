//===- BundleReader.cpp - model.ogc to a cg module ------------------------===//
#include "compiler/bundle/BundleReader.h"

#include "compiler/bundle/ElementTypes.h"
#include "compiler/dialect/cg/Cg.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace ogc::bundle {

namespace {

namespace fb = format::fb;

class Reader {
public:
  Reader(std::shared_ptr<const format::Bundle> bundle, MLIRContext *context)
      : bundle_(std::move(bundle)), manifest_(bundle_->manifest()), builder_(context) {}

  OwningOpRef<ModuleOp> run() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(builder_.getUnknownLoc());
    builder_.setInsertionPointToEnd(module->getBody());
    for (const fb::Weight *weight : *manifest_.weights())
      readWeight(*weight);
    for (const fb::Graph *graph : *manifest_.graphs())
      readGraph(*graph);
    if (manifest_.symbols() && manifest_.symbols()->size() != 0)
      module.get()->setAttr("ogc.padding", padding());
    return module;
  }

private:
  ArrayAttr padding() {
    SmallVector<Attribute> answers;
    for (const fb::Symbol *symbol : *manifest_.symbols()) {
      SmallVector<Attribute> cuts;
      for (const fb::RowCut *cut : *symbol->cuts())
        cuts.push_back(builder_.getDenseI64ArrayAttr({cut->output(), cut->dim(), cut->inner()}));
      NamedAttrList answer;
      answer.set("symbol", builder_.getStringAttr(symbol->name()->str()));
      answer.set("safe", builder_.getBoolAttr(symbol->padding_safe()));
      answer.set("cuts", builder_.getArrayAttr(cuts));
      answer.set("operator", builder_.getStringAttr(symbol->operator_type()->str()));
      answer.set("node", builder_.getStringAttr(symbol->node()->str()));
      answer.set("reason", builder_.getStringAttr(symbol->reason()->str()));
      answers.push_back(answer.getDictionary(builder_.getContext()));
    }
    return builder_.getArrayAttr(answers);
  }

  RankedTensorType tensorType(fb::DataType type, const flatbuffers::Vector<int64_t> &shape) {
    return RankedTensorType::get(ArrayRef<int64_t>(shape.data(), shape.size()), mlirTypeOf(type, builder_.getContext()));
  }

  void readWeight(const fb::Weight &weight) {
    auto type = tensorType(weight.type(), *weight.shape());
    AsmResourceBlob blob;
    if (auto bytes = bundle_->inlineWeights(); bytes && weight.size_bytes() != 0) {
      auto part = bytes->subspan(weight.offset_bytes(), weight.size_bytes());
      ArrayRef<char> data(reinterpret_cast<const char *>(part.data()), part.size());
      blob = AsmResourceBlob(
          data, format::elementBytes(weight.type()), [keep = bundle_](void *, size_t, size_t) {}, /*dataIsMutable=*/false);
    }
    auto value = DenseResourceElementsAttr::get(type, weight.name()->str(), std::move(blob));
    cg::WeightOp::create(builder_, builder_.getUnknownLoc(), weight.name()->str(), value,
                         static_cast<int64_t>(weight.offset_bytes()));
  }

  cg::SliceAttr slice(const fb::Slice &slice) {
    return cg::SliceAttr::get(builder_.getContext(), static_cast<cg::Section>(slice.section()),
                              static_cast<int64_t>(slice.offset_bytes()), static_cast<int64_t>(slice.size_bytes()),
                              static_cast<cg::Access>(slice.access()));
  }

  ArrayAttr bindings(const flatbuffers::Vector<flatbuffers::Offset<fb::Binding>> &bindings) {
    SmallVector<Attribute> attributes;
    for (const fb::Binding *binding : bindings) {
      SmallVector<Attribute> symbols;
      for (const auto *symbol : *binding->symbols())
        symbols.push_back(builder_.getStringAttr(symbol->str()));
      const fb::Slice &place = *binding->slice();
      DenseI64ArrayAttr extent;
      if (const fb::Slice *runTime = binding->extent())
        extent = builder_.getDenseI64ArrayAttr({binding->extent_dim(), static_cast<int64_t>(runTime->offset_bytes())});
      attributes.push_back(cg::BindingAttr::get(
          builder_.getContext(), builder_.getStringAttr(binding->name()->str()), tensorType(binding->type(), *binding->shape()),
          builder_.getArrayAttr(symbols), static_cast<cg::Section>(place.section()), static_cast<int64_t>(place.offset_bytes()),
          static_cast<int64_t>(place.size_bytes()), extent));
    }
    return builder_.getArrayAttr(attributes);
  }

  Location location(const fb::Node &node) {
    SmallVector<Location> names;
    for (unsigned i = 0; node.names() && i < node.names()->size(); ++i)
      names.push_back(NameLoc::get(builder_.getStringAttr(node.names()->Get(i)->str())));
    if (names.empty())
      return builder_.getUnknownLoc();
    return names.size() == 1 ? names.front() : FusedLoc::get(builder_.getContext(), names);
  }

  void readGraph(const fb::Graph &graph) {
    IntegerAttr topology;
    if (graph.topology() != format::kNoTopology)
      topology = builder_.getI64IntegerAttr(graph.topology());
    cg::GraphOp op = cg::GraphOp::create(builder_, builder_.getUnknownLoc(), graph.id()->str(), bindings(*graph.inputs()),
                                         bindings(*graph.outputs()), static_cast<int64_t>(graph.scratch_bytes()),
                                         static_cast<int64_t>(graph.scratch_bound_bytes()), topology);
    OpBuilder::InsertionGuard guard(builder_);
    builder_.createBlock(&op.getBody());
    std::vector<std::vector<const fb::Edge *>> incoming(graph.nodes()->size());
    for (const fb::Edge *edge : *graph.edges())
      incoming[edge->to()].push_back(edge);
    SmallVector<Value> nodes;
    for (unsigned i = 0; i < graph.nodes()->size(); ++i) {
      SmallVector<Value> dependencies;
      SmallVector<int32_t> kinds;
      bool programmatic = false;
      for (const fb::Edge *edge : incoming[i]) {
        dependencies.push_back(nodes[edge->from()]);
        kinds.push_back(static_cast<int32_t>(edge->kind()));
        programmatic |= edge->kind() == fb::EdgeKind::Programmatic;
      }
      auto kindsAttr = programmatic ? builder_.getDenseI32ArrayAttr(kinds) : DenseI32ArrayAttr();
      nodes.push_back(readNode(*graph.nodes()->Get(i), dependencies, kindsAttr));
    }
  }

  Value readNode(const fb::Node &node, ValueRange dependencies, DenseI32ArrayAttr kinds) {
    SmallVector<Attribute> args;
    for (const fb::Slice *arg : *node.args())
      args.push_back(slice(*arg));
    auto type = cg::NodeType::get(builder_.getContext());
    Location loc = location(node);
    switch (node.kind()) {
    case fb::NodeKind::Kernel:
      return cg::KernelOp::create(builder_, loc, type, kernel(node), builder_.getArrayAttr(args), dependencies, kinds);
    case fb::NodeKind::Gemm:
      return readGemm(node, args, dependencies, kinds);
    case fb::NodeKind::Memcpy:
      return cg::MemcpyOp::create(builder_, loc, type, cast<cg::SliceAttr>(args[0]), cast<cg::SliceAttr>(args[1]), dependencies,
                                  kinds);
    case fb::NodeKind::Memset:
      return cg::MemsetOp::create(builder_, loc, type, cast<cg::SliceAttr>(args[0]), node.value(), dependencies, kinds);
    }
    return Value();
  }

  FlatSymbolRefAttr kernel(const fb::Node &node) {
    return FlatSymbolRefAttr::get(builder_.getContext(), manifest_.kernels()->Get(node.kernel())->name()->str());
  }

  Value readGemm(const fb::Node &node, ArrayRef<Attribute> args, ValueRange dependencies, DenseI32ArrayAttr kinds) {
    const fb::Gemm &gemm = *node.gemm();
    auto type = [&](fb::DataType element) { return mlirTypeOf(element, builder_.getContext()); };
    StringRef activation = gemm.activation() == fb::Activation::Relu       ? "relu"
                           : gemm.activation() == fb::Activation::GeluTanh ? "gelu_tanh"
                                                                           : "";
    return cg::GemmOp::create(builder_, location(node), cg::NodeType::get(builder_.getContext()), kernel(node),
                              builder_.getArrayAttr(args), TypeAttr::get(type(gemm.element_type())),
                              TypeAttr::get(type(gemm.result_type())), builder_.getI64IntegerAttr(gemm.batch()),
                              builder_.getI64IntegerAttr(gemm.m()), builder_.getI64IntegerAttr(gemm.n()),
                              builder_.getI64IntegerAttr(gemm.k()), unit(gemm.broadcast_b()), unit(gemm.transpose_b()),
                              unit(gemm.has_bias()), unit(gemm.has_residual()), builder_.getStringAttr(activation),
                              unit(gemm.tf32()), unit(gemm.has_workspace()), dependencies, kinds);
  }

  UnitAttr unit(bool value) { return value ? builder_.getUnitAttr() : UnitAttr(); }

  std::shared_ptr<const format::Bundle> bundle_;
  const fb::Manifest &manifest_;
  OpBuilder builder_;
};

} // namespace

OwningOpRef<ModuleOp> readBundle(const std::shared_ptr<const format::Bundle> &bundle, MLIRContext *context) {
  context->loadDialect<cg::CgDialect>();
  return Reader(bundle, context).run();
}

Status printBundleIr(const std::string &path, llvm::raw_ostream &os) {
  format::OpenOptions options;
  options.checkWeights = false;
  Result<std::shared_ptr<const format::Bundle>> bundle = format::Bundle::open(path, options);
  if (!bundle.ok())
    return bundle.status();
  MLIRContext context(MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = readBundle(bundle.value(), &context);
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(16).elideLargeResourceString(64).enableDebugInfo(/*enable=*/true, /*prettyForm=*/false);
  module->print(os, flags);
  os << "\n";
  return Status();
}

} // namespace ogc::bundle
