//===- Commands.cpp - the commands that ogc and ogc-rt share --------------===//
#include "tools/common/Commands.h"

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>

namespace ogc::tools {

/// Names from files may hold anything: control characters become spaces, so that a message is one line.
static std::string oneLine(std::string text) {
  for (char &c : text)
    if (static_cast<unsigned char>(c) < ' ')
      c = ' ';
  return text;
}

/// Why a required argument without a name is missing, where an option that takes any number of words stands in front of it.
static std::string takenArgument(const CLI::App &program, const CLI::Error &error) {
  if (!dynamic_cast<const CLI::RequiredError *>(&error))
    return "";
  for (const CLI::App *command : program.get_subcommands())
    for (const CLI::Option *positional : command->get_options())
      if (positional->get_positional() && positional->get_required() && positional->empty())
        for (const CLI::Option *option : command->get_options())
          if (!option->empty() && option->get_items_expected_max() >= CLI::detail::expected_max_vector_size)
            return ": " + option->get_name() + " takes all words behind it, so the " + positional->get_name() + " goes in front";
  return "";
}

/// The parser's sentence in the form of our own: its words begin with lower case, and a word that is no subcommand is named.
static std::string usageText(const CLI::App &program, const CLI::Error &error) {
  if (program.get_subcommands().empty() && !program.remaining().empty() && program.remaining()[0][0] != '-') {
    std::string names;
    for (const CLI::App *command : program.get_subcommands([](const CLI::App *) { return true; }))
      names += (names.empty() ? "" : ", ") + command->get_name();
    return "there is no subcommand '" + program.remaining()[0] + "', expected one of " + names;
  }
  std::string text = error.what();
  if (text.empty())
    return text;
  auto lower = [&](size_t at) { text.at(at) = static_cast<char>(std::tolower(static_cast<unsigned char>(text.at(at)))); };
  lower(0);
  // A range's sentence follows the option's name; behind other colons may stand what the user wrote.
  size_t value = text.find(": Value ");
  if (value != std::string::npos && dynamic_cast<const CLI::ValidationError *>(&error))
    lower(value + 2);
  return text + takenArgument(program, error);
}

void setUpProgram(CLI::App &app) {
  app.require_subcommand(1);
  app.set_version_flag("--version", app.get_name() + " " OGC_VERSION);
  app.failure_message([](const CLI::App *program, const CLI::Error &error) {
    std::string help = program->get_name();
    for (const CLI::App *command : program->get_subcommands())
      help += " " + command->get_name();
    return "error: " + oneLine(usageText(*program, error)) + " (" + help + " --help lists what there is)\n";
  });
}

int finishOutput(int exitCode) {
  std::cout.flush();
  bool isWritten = std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout;
  if (!isWritten)
    std::cerr << "error: cannot write to standard output\n";
  return isWritten ? exitCode : 1;
}

/// No number of ours may be negative: the parser would read -1 as the largest unsigned one. Nor may it be NaN or infinite.
static std::string refuseNumber(const std::string &text) {
  if (!text.empty() && text[0] == '-')
    return "'" + text + "' is negative";
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  return end != text.c_str() && !std::isfinite(value) ? "'" + text + "' is no finite number" : "";
}

static void refuseNumbers(CLI::App &app) {
  for (CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
    for (CLI::Option *option : command->get_options())
      for (const char *number : {"UINT", "INT", "FLOAT"})
        if (option->get_type_name().rfind(number, 0) == 0)
          option->transform(CLI::Validator([](std::string &text) { return refuseNumber(text); }, "")); // before others
}

void addRuntimeCommands(CLI::App &app, int &exitCode, const CommandHooks &hooks) {
  addRunCommand(app, exitCode);
  addBenchCommand(app, exitCode);
  addInspectCommand(app, exitCode, hooks);
  addVerifyCommand(app, exitCode);
  addTuneCommand(app, exitCode);
  refuseNumbers(app);
}

void runAction(int &exitCode, const std::function<Status()> &action) {
  Status status;
  try {
    status = action();
  } catch (const std::bad_alloc &) {
    status = Status(Code::OutOfMemory, "out of memory");
  } catch (const std::exception &error) {
    status = Status(Code::Internal, error.what());
  }
  std::fflush(stdout);
  if (status.ok())
    return;
  std::fprintf(stderr, "error: %s\n", oneLine(status.message()).c_str());
  exitCode = 1;
}

} // namespace ogc::tools
