#include "cli/program.h"

int main(int argc, char** argv) { return tilecast::run_program(argc, argv); }
