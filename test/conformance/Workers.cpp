//===- Workers.cpp - runs numbered items in forked processes --------------===//
#include "test/conformance/Workers.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace ogc::conformance {

namespace {

using Clock = std::chrono::steady_clock;

/// A process with the items [next, end) still to do.
struct Worker {
  pid_t process = -1;
  int pipe = -1;
  size_t first = 0, next = 0, end = 0;
  Clock::time_point deadline;
  std::string text; ///< read, and not yet a whole line
  bool hung = false;
};

void writeAll(int file, const std::string &text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t count = write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR)
      _exit(3);
    done += std::max<ssize_t>(count, 0);
  }
}

[[noreturn]] void runChild(const Worker &worker, int pipe, const WorkerLimits &limits, const Work &work) {
  if (limits.bytes) {
    rlimit limit{limits.bytes, limits.bytes};
    setrlimit(RLIMIT_AS, &limit);
  }
  if (limits.batch <= 1) {
    rlimit seconds{limits.seconds, limits.seconds};
    setrlimit(RLIMIT_CPU, &seconds);
  }
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  // What the compiler prints is no line of ours.
  int null = open("/dev/null", O_WRONLY);
  dup2(null, STDOUT_FILENO);
  dup2(null, STDERR_FILENO);
  bool isLast = false;
  for (size_t item = worker.next; item < worker.end && !isLast; ++item) {
    Answer answer = work(item);
    writeAll(pipe, answer.line + "\n");
    isLast = answer.isLast;
  }
  _exit(0);
}

std::string describeEnd(int status, bool hung, unsigned seconds) {
  if (hung || (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL)))
    return "no answer in " + std::to_string(seconds) + " s";
  if (WIFSIGNALED(status))
    return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

/// The pool: starts processes, reads their lines, and gives the rest of a broken batch to new ones.
class Pool {
public:
  Pool(size_t count, const WorkerLimits &limits, const Work &work, const Listener &report, const Listener &failed)
      : limits(limits), work(work), report(report), failed(failed) {
    size_t batch = std::max<size_t>(1, limits.batch);
    for (size_t first = 0; first < count; first += batch)
      ranges.push_back({first, std::min(count, first + batch)});
    std::reverse(ranges.begin(), ranges.end());
  }

  void run() {
    while (!ranges.empty() || !workers.empty()) {
      while (!ranges.empty() && workers.size() < std::max(1u, limits.jobs))
        start();
      waitForText();
      for (size_t i = 0; i < workers.size();)
        if (serve(workers[i]))
          ++i;
        else
          workers.erase(workers.begin() + i);
    }
  }

private:
  void start() {
    Worker worker;
    std::tie(worker.next, worker.end) = ranges.back();
    ranges.pop_back();
    worker.first = worker.next;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) || (worker.process = fork()) < 0) {
      for (size_t item = worker.next; item < worker.end; ++item)
        failed(item, std::string("cannot start a process: ") + strerror(errno));
      return;
    }
    if (worker.process == 0)
      runChild(worker, ends[1], limits, work);
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    worker.pipe = ends[0];
    worker.deadline = Clock::now() + std::chrono::seconds(6 * limits.seconds);
    workers.push_back(std::move(worker));
  }

  void waitForText() {
    std::vector<pollfd> files;
    auto until = Clock::now() + std::chrono::seconds(1);
    for (const Worker &worker : workers) {
      files.push_back({worker.pipe, POLLIN, 0});
      until = std::min(until, worker.deadline);
    }
    auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    poll(files.data(), files.size(), static_cast<int>(std::max<int64_t>(rest, 1)));
  }

  /// Takes what a worker wrote; false when it is no more.
  bool serve(Worker &worker) {
    char buffer[1 << 14];
    ssize_t count;
    while ((count = read(worker.pipe, buffer, sizeof buffer)) > 0)
      worker.text.append(buffer, count);
    for (size_t end; (end = worker.text.find('\n')) != std::string::npos; worker.text.erase(0, end + 1)) {
      report(worker.next++, worker.text.substr(0, end));
      worker.deadline = Clock::now() + std::chrono::seconds(6 * limits.seconds);
    }
    if (count != 0) {
      if (Clock::now() < worker.deadline)
        return true;
      worker.hung = true;
      kill(worker.process, SIGKILL);
    }
    close(worker.pipe);
    int status = 0;
    while (waitpid(worker.process, &status, 0) < 0 && errno == EINTR)
      ;
    if (worker.next < worker.end) {
      bool handsOver = !worker.hung && WIFEXITED(status) && WEXITSTATUS(status) == 0 && worker.next != worker.first;
      if (!handsOver)
        failed(worker.next++, describeEnd(status, worker.hung, limits.seconds));
      if (worker.next < worker.end)
        ranges.push_back({worker.next, worker.end});
    }
    return false;
  }

  const WorkerLimits &limits;
  const Work &work;
  const Listener &report, &failed;
  std::vector<std::pair<size_t, size_t>> ranges; ///< to do, the first one last
  std::vector<Worker> workers;
};

} // namespace

void runInProcesses(size_t count, const WorkerLimits &limits, const Work &work, const Listener &report, const Listener &failed) {
  Pool(count, limits, work, report, failed).run();
}

} // namespace ogc::conformance
