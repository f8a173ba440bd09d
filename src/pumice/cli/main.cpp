// pumice: load → split → linearise → solve → shift → noise → readouts → record → report.
#include <torch/version.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "pumice/cli/command.h"
#include "pumice/core/error.h"
#include "pumice/core/interrupt.h"
#include "pumice/core/memory.h"
#include "pumice/core/revision.h"
#include "pumice/core/suggestion.h"
#include "pumice/linalg/blas_kernels.h"

namespace pumice::cli {
namespace {

constexpr int exit_done = 0;
constexpr int exit_failed = 1;
constexpr int exit_wrong_use = 2;

void say_error(const std::string& sentence) {
  std::fprintf(stderr, "pumice: %s\n", sentence.c_str());
}

const CLI::App* deepest_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return command;
}

std::string command_path(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent ? command_path(*parent) + " " + command.get_name() : command.get_name();
}

// CLI11 reports a misspelt option or subcommand as a left-over word; say which was probably meant.
std::string explain_leftover(const CLI::App& app) {
  const CLI::App* command = deepest_command(app);
  const std::vector<std::string> leftover = app.remaining(true);
  const std::string word =
      leftover.empty() ? "" : leftover.front().substr(0, leftover.front().find('='));
  std::vector<std::string> known;
  if (word.starts_with("-")) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    return text("unknown option '", word, "'", suggestion(word, known));
  }
  for (const CLI::App* subcommand :
       command->get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(subcommand->get_name());
  }
  return text(known.empty() ? "unexpected argument '" : "unknown command '", word, "'",
              suggestion(word, known));
}

int report_parse_error(const CLI::App& app, const CLI::ParseError& error) {
  const std::string sentence =
      dynamic_cast<const CLI::ExtrasError*>(&error) ||
              (dynamic_cast<const CLI::RequiredError*>(&error) && !app.remaining(true).empty())
          ? explain_leftover(app)
          : std::string(error.what());
  say_error(text(sentence, "\nTry '", command_path(*deepest_command(app)), " --help'."));
  return exit_wrong_use;
}

int run(int argument_count, char** arguments) {
  CLI::App app(
      "Removes what a trained classifier learned from chosen training examples, in one shot, "
      "and measures what is left.",
      "pumice");
  app.set_version_flag("--version", text("pumice ", version(), " (revision ", revision(),
                                         ", LibTorch ", TORCH_VERSION, ")"));
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 1 the run failed, 2 wrong use.\n"
      "Example: pumice train --init weights/fashion-mnist-allcnn-w0.25.safetensors "
      "--classes 0-4 --per-class 100 --batch 32 --rate 0.003 --weight-decay 0.02 --out "
      "w.safetensors");
  add_data_command(app);
  add_train_command(app);
  add_kernel_command(app);
  add_forget_command(app);
  add_index_command(app);
  add_audit_command(app);
  add_run_command(app);
  add_demo_command(app);
  add_report_command(app);

  try {
    app.parse(argument_count, arguments);
    return exit_done;
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted) == 0 ? exit_done : exit_wrong_use;
  } catch (const CLI::ParseError& error) {
    return report_parse_error(app, error);
  } catch (const UsageError& error) {
    say_error(error.what());
    return exit_wrong_use;
  } catch (const Error& error) {
    say_error(error.what());
    return exit_failed;
  } catch (const std::bad_alloc&) {
    say_error("out of memory");
    return exit_failed;
  } catch (const std::exception& error) {
    // LibTorch's messages carry a stack trace; its first line says what happened.
    const std::string message = error.what();
    if (message.find("can't allocate memory") != std::string::npos) {
      say_error("out of memory");
      return exit_failed;
    }
    say_error("internal error, please report it: " + message.substr(0, message.find('\n')));
    return exit_failed;
  }
}

}  // namespace
}  // namespace pumice::cli

int main(int argument_count, char** arguments) {
  pumice::restart_with_better_blas_kernels(arguments);
  pumice::keep_freed_memory();
  pumice::listen_for_interrupts();
  return pumice::cli::run(argument_count, arguments);
}
