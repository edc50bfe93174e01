#pragma once

// Prices of GPUs in tables: which row, from when, and whether it is a guess.

#include <optional>
#include <string>
#include <vector>

#include "report/kernel_text.h"
#include "tilecast/request.h"

namespace tilecast {

/// What stands before an amount: "$", also where no currency is stated, or "EUR ".
std::string currency_sign(const std::optional<GpuPrice>& price);
/// Of prices that are in one currency.
std::string currency_sign(const std::vector<GpuPrice>& prices);

/// "6.88 USD an hour of H100, aws-on-demand, 2025-06; guess: list price of …"; "": it is from no
/// table.
std::string price_text(const GpuPrice& price);

/// A line for each price that is from a table.
std::string price_lines(const std::vector<GpuPrice>& prices, const TableStyle& style);

}  // namespace tilecast
