// A device file of any content either gives a device or an Error that is not a bug.

#include <cstdint>
#include <string_view>

#include "devices/device.h"
#include "tilecast/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tilecast::parse_device({reinterpret_cast<const char*>(data), size}, "device.json");
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
  return 0;
}
