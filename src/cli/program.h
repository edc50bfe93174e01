#pragma once

namespace tilecast {

/// The program: runs a command line and returns the exit status. Errors go to standard error.
/// Signals of pipes and files are ignored from then on, and those that end a process remove
/// unfinished files.
int run_program(int argc, char** argv);

}  // namespace tilecast
