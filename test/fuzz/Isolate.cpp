//===- Isolate.cpp - runs cases in child processes, under limits -----------===//
#include "test/fuzz/Isolate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <fcntl.h>
#include <memory>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OGC_FUZZ_ASAN 1
#include <sanitizer/allocator_interface.h>
#endif
#endif

#ifdef OGC_FUZZ_ASAN
/// What a model asks for, such as the arena of an accepted bundle, must be refused by the allocator as it is elsewhere by the
/// limit of the address space: counting alone would end the process where a null pointer is in order. Less than the least limit
/// of limitAllocations, with room for what else is held. `operator new` still ends the process.
extern "C" const char *__asan_default_options() { return "allocator_may_return_null=1:max_allocation_size_mb=192"; }
#endif

namespace ogc::fuzz {

namespace {

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Processor time that a process has used; a machine that does other things too must not look like a hang.
double processorSeconds(clockid_t clock) {
  timespec time{};
  return clock_gettime(clock, &time) == 0 ? static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9 : 0;
}

/// What a child tells its parent, in shared memory: the case that it is doing. `cases` counts up, so that the parent sees
/// progress.
struct Progress {
  std::atomic<uint64_t> index, cases, accepted;
  std::atomic<double> processorSeconds; ///< of the child when the case began
};

struct Child {
  pid_t pid = -1;
  Progress *progress = nullptr;
  int log = -1; ///< a file without a name that takes the child's standard error
  uint64_t seenCases = 0;
  Clock::time_point seenAt;
  bool hung = false;
};

std::string readLog(int log) {
  constexpr off_t most = 6000;
  off_t size = lseek(log, 0, SEEK_END);
  off_t from = std::max<off_t>(0, size - most);
  // The report of a sanitizer begins with what matters.
  std::string text(static_cast<size_t>(std::min(size, most)), 0);
  ssize_t got = pread(log, text.data(), text.size(), from);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

#ifdef OGC_FUZZ_ASAN
std::atomic<int64_t> heldBytes{0}, mostBytes{INT64_MAX};

void onMalloc(const volatile void *, size_t size) {
  if (heldBytes.fetch_add(static_cast<int64_t>(size)) + static_cast<int64_t>(size) > mostBytes.load()) {
    mostBytes = INT64_MAX;
    fail("allocation beyond the limit");
  }
}
void onFree(const volatile void *pointer) {
  heldBytes -= static_cast<int64_t>(__sanitizer_get_allocated_size(const_cast<const void *>(pointer)));
}
#else
/// Writes the calls that led to a signal; addresses of this program are offsets for `nm` or `addr2line`.
void onSignal(int signal) {
  void *frames[24];
  backtrace_symbols_fd(frames, backtrace(frames, 24), STDERR_FILENO);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void reportSignals() {
  static char stack[1 << 16]; // a stack of its own: the other one may have overflowed
  stack_t alternate{stack, 0, sizeof stack};
  sigaltstack(&alternate, nullptr);
  struct sigaction action{};
  action.sa_handler = onSignal;
  action.sa_flags = SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS})
    sigaction(signal, &action, nullptr);
}

uint64_t addressSpace() {
  uint64_t pages = 0;
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen("/proc/self/statm", "r"), std::fclose);
  if (!file || std::fscanf(file.get(), "%lu", &pages) != 1)
    return 0;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}
#endif

class Runner {
public:
  Runner(uint64_t count, const Limits &limits, const std::function<bool(uint64_t)> &run)
      : count(count), limits(limits), run(run) {}

  Outcome go() {
    next = static_cast<std::atomic<uint64_t> *>(share(sizeof(std::atomic<uint64_t>)));
    std::vector<Child> children(limits.jobs);
    for (Child &child : children) {
      child.progress = static_cast<Progress *>(share(sizeof(Progress)));
      child.log = static_cast<int>(memfd_create("fuzz-log", MFD_CLOEXEC));
      start(child);
    }
    while (std::any_of(children.begin(), children.end(), [](const Child &child) { return child.pid > 0; })) {
      for (Child &child : children)
        if (child.pid > 0)
          watch(child);
      usleep(5000);
    }
    std::sort(findings.begin(), findings.end(), [](const Finding &a, const Finding &b) { return a.index < b.index; });
    Outcome outcome{std::min(count, next->load()), 0, std::move(findings)};
    for (const Child &child : children)
      outcome.accepted += child.progress->accepted;
    return outcome;
  }

private:
  static void *share(size_t bytes) { return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); }

  bool isOver() const {
    return next->load() >= count || findings.size() >= limits.maxFindings ||
           (limits.seconds > 0 && secondsSince(begin) > limits.seconds);
  }

  void start(Child &child) {
    child.pid = -1;
    if (isOver())
      return;
    child.hung = false;
    child.seenCases = child.progress->cases;
    if (ftruncate(child.log, 0) != 0)
      return;
    lseek(child.log, 0, SEEK_SET);
    child.pid = fork();
    if (child.pid == 0)
      runCases(child);
    child.seenAt = Clock::now();
  }

  [[noreturn]] void runCases(Child &child) {
    dup2(child.log, STDERR_FILENO);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDOUT_FILENO);
#ifndef OGC_FUZZ_ASAN
    reportSignals();
#endif
    rlimit noCore{0, 0};
    setrlimit(RLIMIT_CORE, &noCore);
    for (uint64_t i = 0; i < limits.casesPerChild && !isOver(); ++i) {
      uint64_t index = next->fetch_add(1);
      if (index >= count)
        break;
      child.progress->index = index;
      child.progress->processorSeconds = processorSeconds(CLOCK_PROCESS_CPUTIME_ID);
      child.progress->cases++;
      child.progress->accepted += run(index);
    }
    _exit(0);
  }

  bool isHung(const Child &child) const {
    clockid_t clock{};
    if (clock_getcpuclockid(child.pid, &clock) != 0)
      return false; // ended just now
    double used = processorSeconds(clock) - child.progress->processorSeconds;
    return used > limits.hangSeconds || secondsSince(child.seenAt) > 10 * limits.hangSeconds;
  }

  void watch(Child &child) {
    int status = 0;
    pid_t ended = waitpid(child.pid, &status, WNOHANG);
    if (ended == 0) {
      if (uint64_t cases = child.progress->cases; cases != child.seenCases) {
        child.seenCases = cases;
        child.seenAt = Clock::now();
      } else if (!child.hung && isHung(child)) {
        child.hung = true;
        kill(child.pid, SIGKILL);
      }
      return;
    }
    if (child.hung)
      findings.push_back({child.progress->index, "hang", readLog(child.log)});
    else if (WIFSIGNALED(status))
      findings.push_back({child.progress->index, "signal " + std::to_string(WTERMSIG(status)), readLog(child.log)});
    else if (WEXITSTATUS(status) != 0)
      findings.push_back({child.progress->index, "exit code " + std::to_string(WEXITSTATUS(status)), readLog(child.log)});
    start(child);
  }

  uint64_t count;
  const Limits &limits;
  const std::function<bool(uint64_t)> &run;
  std::atomic<uint64_t> *next = nullptr;
  std::vector<Finding> findings;
  Clock::time_point begin = Clock::now();
};

} // namespace

Outcome runIsolated(uint64_t count, const Limits &limits, const std::function<bool(uint64_t)> &run) {
  return Runner(count, limits, run).go();
}

void fail(const std::string &message) {
  std::string line = "fuzz: " + message + "\n";
  ssize_t ignored = write(STDERR_FILENO, line.data(), line.size());
  static_cast<void>(ignored);
  std::abort();
}

void limitAllocations(uint64_t bytes) {
#ifdef OGC_FUZZ_ASAN
  static bool installed = __sanitizer_install_malloc_and_free_hooks(onMalloc, onFree) != 0;
  static_cast<void>(installed);
  mostBytes = heldBytes.load() + static_cast<int64_t>(bytes);
#else
  // Room for what the allocator has not given back, and for stacks and mappings that count too.
  constexpr uint64_t slack = uint64_t(64) << 20;
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = std::min<rlim_t>(addressSpace() + bytes + slack, limit.rlim_max);
  setrlimit(RLIMIT_AS, &limit);
#endif
}

} // namespace ogc::fuzz
