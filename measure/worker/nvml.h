#pragma once

#include <cstdint>
#include <string>

namespace tilecast::measure {

/// Readings of the card's sensors at one moment; 0 where a sensor is missing.
struct Sensors {
  double sm_clock_hz = 0;
  double memory_clock_hz = 0;
  double power_w = 0;
  double temperature_c = 0;
  uint64_t throttle_reasons = 0;  ///< nvmlClocksEventReasons bits
};

/// NVIDIA's management library, opened at run time: without it the sensors read 0.
class Nvml {
 public:
  Nvml() = default;
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// `pci_bus_id` as cudaDeviceGetPCIBusId gives it: CUDA and NVML count cards differently.
  void open(const std::string& pci_bus_id);
  bool is_open() const { return device_ != nullptr; }
  Sensors read() const;
  double power_cap_w() const;
  double highest_sm_clock_hz() const;
  double highest_memory_clock_hz() const;
  std::string driver_version() const;

 private:
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace tilecast::measure
