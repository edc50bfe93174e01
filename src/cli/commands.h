#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace tilecast {

/// Adds one subcommand; what it does runs after parsing.
void add_forecast_command(CLI::App& app);
void add_kernel_command(CLI::App& app);
void add_evaluate_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_calibrate_command(CLI::App& app);
void add_catalog_commands(CLI::App& app);

/// Writes to the file, or to standard output where the path is empty. Throws Error{kIo}.
void emit(const std::string& text, const std::string& path);

}  // namespace tilecast
