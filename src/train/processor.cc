#include "train/processor.h"

#include "tilecast/error.h"

namespace tilecast {

void require_training_instructions() {
#ifdef TILECAST_TRAIN_V3
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi2"))
    throw Error(ErrorKind::kUnsupported,
                "this build trains and calibrates with AVX2 and FMA instructions, which this "
                "processor lacks; build with -DTILECAST_TRAIN_ARCH=x86-64 to do it without them");
#endif
}

}  // namespace tilecast
