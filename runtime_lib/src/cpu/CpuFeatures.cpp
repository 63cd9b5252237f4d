//===- CpuFeatures.cpp - LLVM's feature names against /proc/cpuinfo -------===//
#include "runtime_lib/src/cpu/CpuFeatures.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace ogc::runtime {

namespace {

struct Spelling {
  std::string_view llvm, kernel;
};

/// Features that Linux spells otherwise than LLVM, apart from '.' and '-' for '_'. AVX10.1 is the AVX-512 of Sapphire Rapids,
/// whose newest part is that for f16; /proc/cpuinfo need not have a flag for it.
constexpr Spelling kSpellings[] = {
    {"64bit", "lm"},
    {"avx10.1", "avx512_fp16"},
    {"avx512bf16", "avx512_bf16"},
    {"avx512bitalg", "avx512_bitalg"},
    {"avx512fp16", "avx512_fp16"},
    {"avx512vbmi2", "avx512_vbmi2"},
    {"avx512vnni", "avx512_vnni"},
    {"avx512vpopcntdq", "avx512_vpopcntdq"},
    {"avxvnni", "avx_vnni"},
    {"bmi", "bmi1"},
    {"crc32", "sse4_2"},
    {"evex512", "avx512f"},
    {"lzcnt", "abm"},
    {"pclmul", "pclmulqdq"},
    {"sha", "sha_ni"},
    {"sse3", "pni"},
    {"x87", "fpu"},
};

/// Features of LLVM's list for a processor that code made from arithmetic never uses: system instructions, transactions, cache
/// control, random numbers. A bundle for "host" names them too, and must not be refused for them.
constexpr std::string_view kIrrelevant[] = {
    "adx",    "cldemote", "clflushopt", "clwb",    "clzero",    "cx16",    "cx8",    "enqcmd",  "fsgsbase",  "fxsr",
    "hreset", "invpcid",  "kl",         "mmx",     "movdir64b", "movdiri", "mwaitx", "pconfig", "pku",       "prefetchi",
    "prfchw", "ptwrite",  "rdpid",      "rdpru",   "rdrnd",     "rdseed",  "rtm",    "sahf",    "serialize", "sgx",
    "shstk",  "tsxldtrk", "uintr",      "waitpkg", "wbnoinvd",  "widekl",  "xsave",  "xsavec",  "xsaveopt",  "xsaves",
};

std::string kernelSpelling(std::string_view feature) {
  for (const Spelling &spelling : kSpellings)
    if (spelling.llvm == feature)
      return std::string(spelling.kernel);
  std::string name(feature);
  std::replace(name.begin(), name.end(), '.', '_');
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// Calls `visit` with every part of `text` between separators of `separators`.
template <typename Visitor> void split(std::string_view text, std::string_view separators, Visitor visit) {
  while (!text.empty()) {
    size_t end = text.find_first_of(separators);
    if (end != 0)
      visit(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

} // namespace

Status checkCpuFeatures(std::string_view required, std::string_view flags) {
  std::set<std::string, std::less<>> available;
  split(flags, " \t", [&](std::string_view flag) { available.emplace(flag); });
  std::string missing;
  split(required, ", ", [&](std::string_view feature) {
    if (feature.starts_with('-'))
      return;
    if (feature.starts_with('+'))
      feature.remove_prefix(1);
    if (std::find(std::begin(kIrrelevant), std::end(kIrrelevant), feature) != std::end(kIrrelevant))
      return;
    if (!available.contains(kernelSpelling(feature)))
      missing += (missing.empty() ? "" : ", ") + std::string(feature);
  });
  if (!missing.empty())
    return Status(Code::Unsupported, "this processor lacks what the cpu kernels need: " + missing);
  return Status();
}

Status checkCpuFeatures(std::string_view required) {
  if (required.empty())
    return Status();
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("flags"))
      return checkCpuFeatures(required, std::string_view(line).substr(line.find(':') + 1));
  return Status(Code::Unsupported, "cannot find out what this processor supports");
}

} // namespace ogc::runtime
