#include <tilecast/evaluate.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const tilecast::Forecaster forecaster;
  const tilecast::Evaluation found = tilecast::evaluate(forecaster, argv[1]);
  std::printf("%zu rows\n", found.rows.size());
}
