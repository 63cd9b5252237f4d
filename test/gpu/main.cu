//===- main.cu - runs the checks, then the timings ------------------------===//
#include "harness.h"
#include <cstring>

void checkGemm();
void checkMapped();
void checkStatistics();
void checkConv();
void checkBoxes();
void checkAttention();
void timeLayers();
void timeVariants();

/// `kernels_test [check] [time] [variants]`: the first two without arguments. Exit status 1 if a check fails.
int main(int argc, char **argv) {
  bool check = argc < 2, time = argc < 2, variants = false;
  for (int i = 1; i < argc; ++i) {
    check |= !strcmp(argv[i], "check");
    time |= !strcmp(argv[i], "time");
    variants |= !strcmp(argv[i], "variants");
  }
  if (check) {
    checkGemm();
    checkMapped();
    checkStatistics();
    checkConv();
    checkBoxes();
    checkAttention();
    printf("checks: %d failed\n", bench::failures());
  }
  if (time && !bench::failures())
    timeLayers();
  if (variants)
    timeVariants();
  return bench::failures() != 0;
}
