//===- Status.h - the outcome of an operation: a code and a sentence ------===//
#ifndef OGC_FORMAT_STATUS_H
#define OGC_FORMAT_STATUS_H

#include <string>
#include <utility>

namespace ogc {

/// What kind of failure it was. The numbers are those of `ogc_code` in ogc/runtime.h.
enum class Code : int {
  Ok = 0,
  InvalidArgument = 1,    ///< the caller passed something wrong: a name, an index, a size
  NotFound = 2,           ///< a file, library, device or symbol is not there
  DataLoss = 3,           ///< the bundle is damaged or no bundle
  Unsupported = 4,        ///< right, but not for this machine or this version: another architecture, a missing instruction set
  FailedPrecondition = 5, ///< right, but not now: no weights given, a stream is capturing
  OutOfMemory = 6,
  Busy = 7,     ///< another thread is inside the same context
  Device = 8,   ///< a driver or library call failed
  Internal = 9, ///< a broken invariant of ours
};

/// A code and, unless Ok, a message in lower case without a period. Never dropped silently.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::Ok; }
  Code code() const { return code_; }
  const std::string &message() const { return message_; }

  /// The same failure with `context` in front: "context: message".
  Status withContext(const std::string &context) const { return ok() ? Status() : Status(code_, context + ": " + message_); }

private:
  Code code_ = Code::Ok;
  std::string message_;
};

/// A value, or the reason why there is none. `value()` may only be called when `ok()`.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const { return status_.ok(); }
  const Status &status() const { return status_; }
  T &value() { return value_; }

private:
  Status status_;
  T value_{};
};

/// Returns from the calling function when `expression` fails.
#define OGC_RETURN_IF_ERROR(expression)                                                                                          \
  do {                                                                                                                           \
    if (::ogc::Status ogcStatus = (expression); !ogcStatus.ok())                                                                 \
      return ogcStatus;                                                                                                          \
  } while (false)

} // namespace ogc

#endif
