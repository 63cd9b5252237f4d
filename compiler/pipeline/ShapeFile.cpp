//===- ShapeFile.cpp - the shapes of a file -------------------------------===//
#include "compiler/pipeline/ShapeFile.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

namespace ogc {

namespace yaml = llvm::yaml;

namespace {

class ShapeFile {
public:
  ShapeFile(llvm::StringRef text, llvm::StringRef name) : name(name), stream(text, sources) {
    sources.setDiagHandler([](const llvm::SMDiagnostic &diag, void *self) { static_cast<ShapeFile *>(self)->report(diag); },
                           this);
  }

  llvm::Expected<std::vector<std::string>> parse() {
    auto document = stream.begin();
    yaml::Node *root = document == stream.end() ? nullptr : document->getRoot();
    if (auto *mapping = llvm::dyn_cast_or_null<yaml::MappingNode>(root))
      readDocument(*mapping);
    else
      readList(root);
    if (error.empty() && stream.failed())
      error = name + ": not valid YAML";
    if (error.empty() && shapes.empty())
      error = name + ": holds no shapes";
    if (!error.empty())
      return llvm::createStringError(error);
    return shapes;
  }

private:
  void report(const llvm::SMDiagnostic &diag) {
    if (error.empty())
      error = name + ":" + std::to_string(std::max(diag.getLineNo(), 1)) + ": " + diag.getMessage().str();
  }
  /// The first problem counts; `node` may be null.
  void fail(yaml::Node *node, const llvm::Twine &what) {
    if (node && error.empty())
      stream.printError(node, what);
    if (error.empty())
      error = (name + ": " + what).str();
  }

  void readDocument(yaml::MappingNode &mapping) {
    for (yaml::KeyValueNode &entry : mapping) {
      std::string key = scalar(entry.getKey());
      if (key == "shapes")
        readList(entry.getValue());
      else
        fail(entry.getKey(), "unknown key '" + key + "', expected 'shapes'");
      if (!error.empty())
        return;
    }
  }

  void readList(yaml::Node *node) {
    auto *list = llvm::dyn_cast_or_null<yaml::SequenceNode>(node);
    if (!list)
      return fail(node, "expected a list of shapes");
    for (yaml::Node &entry : *list) {
      if (auto *mapping = llvm::dyn_cast<yaml::MappingNode>(&entry))
        shapes.push_back(readMapping(*mapping));
      else
        shapes.push_back(scalar(&entry));
      if (!error.empty())
        return;
    }
  }

  std::string readMapping(yaml::MappingNode &mapping) {
    std::string id, text;
    for (yaml::KeyValueNode &entry : mapping) {
      std::string key = scalar(entry.getKey()), value = values(entry.getValue());
      if (!error.empty())
        return {};
      if (key == "id")
        id = value + ": ";
      else
        text += (text.empty() ? "" : " ") + key + "=" + value;
    }
    return id + text;
  }

  std::string values(yaml::Node *node) {
    auto *list = llvm::dyn_cast_or_null<yaml::SequenceNode>(node);
    if (!list)
      return scalar(node);
    std::string text;
    for (yaml::Node &value : *list) {
      text += (text.empty() ? "" : ",") + scalar(&value);
      if (!error.empty())
        return {};
    }
    return text;
  }

  std::string scalar(yaml::Node *node) {
    llvm::SmallString<64> storage;
    if (auto *value = llvm::dyn_cast_or_null<yaml::ScalarNode>(node))
      return value->getValue(storage).trim().str();
    if (auto *value = llvm::dyn_cast_or_null<yaml::BlockScalarNode>(node))
      return value->getValue().trim().str();
    fail(node, "expected a text or a number");
    return {};
  }

  std::string name, error;
  llvm::SourceMgr sources;
  yaml::Stream stream;
  std::vector<std::string> shapes;
};

} // namespace

llvm::Expected<std::vector<std::string>> parseShapeFile(llvm::StringRef text, llvm::StringRef name) {
  return ShapeFile(text, name).parse();
}

llvm::Expected<std::vector<std::string>> readShapeFiles(const std::vector<std::string> &shapes) {
  std::vector<std::string> all;
  for (const std::string &text : shapes) {
    llvm::StringRef path(text);
    if (!path.consume_front("@")) {
      all.push_back(text);
      continue;
    }
    auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
    if (!buffer)
      return llvm::createStringError("cannot read the shapes of '" + path.str() + "': " + buffer.getError().message());
    llvm::Expected<std::vector<std::string>> some = parseShapeFile((*buffer)->getBuffer(), path);
    if (!some)
      return some.takeError();
    all.insert(all.end(), some->begin(), some->end());
  }
  return all;
}

} // namespace ogc
