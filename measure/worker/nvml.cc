#include "nvml.h"

#include <dlfcn.h>

namespace tilecast::measure {
namespace {

// The few entry points used, with the constants of nvml.h (their values are part of its ABI).
constexpr int kClockSm = 1, kClockMemory = 2;
constexpr int kTemperatureGpu = 0;

template <typename... Arguments>
bool call(void* library, const char* name, Arguments... arguments) {
  if (library == nullptr) return false;
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  return function != nullptr && function(arguments...) == 0;
}

}  // namespace

void Nvml::open(const std::string& pci_bus_id) {
  library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library_ == nullptr || !call(library_, "nvmlInit_v2")) return;
  if (!call(library_, "nvmlDeviceGetHandleByPciBusId_v2", pci_bus_id.c_str(), &device_))
    device_ = nullptr;
}

Nvml::~Nvml() {
  if (library_ == nullptr) return;
  call(library_, "nvmlShutdown");
  dlclose(library_);
}

Sensors Nvml::read() const {
  Sensors sensors;
  if (!is_open()) return sensors;
  unsigned value = 0;
  if (call(library_, "nvmlDeviceGetClockInfo", device_, kClockSm, &value))
    sensors.sm_clock_hz = value * 1e6;
  if (call(library_, "nvmlDeviceGetClockInfo", device_, kClockMemory, &value))
    sensors.memory_clock_hz = value * 1e6;
  if (call(library_, "nvmlDeviceGetPowerUsage", device_, &value)) sensors.power_w = value * 1e-3;
  if (call(library_, "nvmlDeviceGetTemperature", device_, kTemperatureGpu, &value))
    sensors.temperature_c = value;
  unsigned long long reasons = 0;
  if (call(library_, "nvmlDeviceGetCurrentClocksThrottleReasons", device_, &reasons))
    sensors.throttle_reasons = reasons;
  return sensors;
}

double Nvml::power_cap_w() const {
  unsigned value = 0;
  return is_open() && call(library_, "nvmlDeviceGetEnforcedPowerLimit", device_, &value)
             ? value * 1e-3
             : 0;
}

double Nvml::highest_sm_clock_hz() const {
  unsigned value = 0;
  return is_open() && call(library_, "nvmlDeviceGetMaxClockInfo", device_, kClockSm, &value)
             ? value * 1e6
             : 0;
}

double Nvml::highest_memory_clock_hz() const {
  unsigned value = 0;
  return is_open() && call(library_, "nvmlDeviceGetMaxClockInfo", device_, kClockMemory, &value)
             ? value * 1e6
             : 0;
}

std::string Nvml::driver_version() const {
  char text[96] = "";
  if (library_ == nullptr) return "";
  call(library_, "nvmlSystemGetDriverVersion", static_cast<char*>(text), unsigned{sizeof text});
  return text;
}

}  // namespace tilecast::measure
