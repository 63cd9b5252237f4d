//===- Cases.cpp - the cases of a folder that cases.py made ---------------===//
#include "test/conformance/Cases.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace ogc::conformance {

using llvm::json::Array;
using llvm::json::Object;

static llvm::Error bad(const llvm::Twine &what) { return llvm::createStringError(llvm::inconvertibleErrorCode(), what); }

static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> readFile(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return bad("cannot read '" + path + "': " + buffer.getError().message());
  return std::move(*buffer);
}

static llvm::Expected<Tensor> readTensor(const llvm::json::Value &value, llvm::StringRef bytes) {
  const Object *object = value.getAsObject();
  if (!object || !object->getString("name") || !object->getString("type") || !object->getArray("shape") ||
      !object->getInteger("offset") || !object->getInteger("bytes"))
    return bad("cases.json: a tensor needs name, type, shape, offset and bytes");
  Tensor tensor{object->getString("name")->str(), object->getString("type")->str(), {}, {}, {}};
  for (const llvm::json::Value &dim : *object->getArray("shape"))
    tensor.shape.push_back(dim.getAsInteger().value_or(-1));
  uint64_t offset = *object->getInteger("offset"), size = *object->getInteger("bytes");
  if (offset > bytes.size() || size > bytes.size() - offset)
    return bad("cases.json: tensor '" + tensor.name + "' lies beyond the end of tensors.bin");
  tensor.data = llvm::ArrayRef<char>(bytes.data() + offset, size);
  tensor.law = object->getString("law").value_or("").str();
  return tensor;
}

llvm::Error Cases::add(const Object &entry) {
  if (entry.getString("left_out"))
    return llvm::Error::success();
  const Array *inputs = entry.getArray("inputs"), *outputs = entry.getArray("outputs"), *names = entry.getArray("variants");
  if (!entry.getString("name") || !inputs || !outputs || !names)
    return bad("cases.json: a case needs name, inputs, outputs and variants");
  auto item = std::make_unique<Case>();
  item->name = entry.getString("name")->str();
  item->rtol = entry.getNumber("rtol").value_or(0);
  item->atol = entry.getNumber("atol").value_or(0);
  for (auto [list, tensors] : {std::pair(inputs, &item->inputs), std::pair(outputs, &item->outputs)})
    for (const llvm::json::Value &value : *list) {
      llvm::Expected<Tensor> tensor = readTensor(value, bytes->getBuffer());
      if (!tensor)
        return tensor.takeError();
      tensors->push_back(std::move(*tensor));
    }
  cases.push_back(std::move(item));
  variants.emplace_back();
  for (const llvm::json::Value &name : *names)
    variants.back().push_back(name.getAsString().value_or("").str());
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Cases>> Cases::open(llvm::StringRef folder) {
  std::unique_ptr<Cases> result(new Cases);
  result->folder = folder.str();
  auto bytes = readFile(result->folder + "/tensors.bin"), text = readFile(result->folder + "/cases.json");
  if (!bytes || !text)
    return llvm::joinErrors(bytes.takeError(), text.takeError());
  result->bytes = std::move(*bytes);
  llvm::Expected<llvm::json::Value> json = llvm::json::parse((*text)->getBuffer());
  if (!json)
    return json.takeError();
  const Object *top = json->getAsObject();
  if (!top || !top->getArray("cases"))
    return bad("cases.json: there are no cases");
  for (const llvm::json::Value &entry : *top->getArray("cases"))
    if (const Object *object = entry.getAsObject())
      if (llvm::Error error = result->add(*object))
        return error;
  return result;
}

std::vector<Trial> Cases::trials(llvm::ArrayRef<std::string> wanted) const {
  std::vector<Trial> trials;
  for (auto [item, has] : llvm::zip_equal(cases, variants))
    for (const std::string &variant : has)
      if (llvm::is_contained(wanted, variant))
        trials.push_back({item.get(), variant,
                          llvm::formatv("{0}/models/{1}{2}.onnx", folder, item->name, variant == "plain" ? "" : "." + variant)});
  return trials;
}

} // namespace ogc::conformance
