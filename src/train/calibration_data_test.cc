#include "train/calibration_data.h"

#include <gtest/gtest.h>

#include "base/embedded.h"
#include "base/file.h"
#include "base/json.h"
#include "devices/registry.h"
#include "test_support.h"

namespace tilecast {
namespace {

TEST(CalibrationData, RowsWithoutATimeAreCountedAndOtherGpusRefused) {
  const TemporaryFolder folder;
  const auto path = (folder.path() / "few.csv").string();
  const Device l4 = find_device("L4");
  const auto read = [&](const std::string& text, const std::string& gpu) {
    write_file(path, text);
    return read_calibration_data({path}, find_device(gpu), gpu, load_weights(""));
  };
  const std::string header = "gpu,op,dtype,n,latency_s\n";
  const CalibrationData data = read(
      header + "L4,add,fp32,1000000,1e-4\nnvidia-l4,add,fp32,2000000,2e-4\nL4,add,fp32,9,\n", "L4");
  EXPECT_EQ(data.rows.size(), 2u);
  ASSERT_EQ(data.report.size(), 1u);
  EXPECT_EQ(data.report[0], "left out " + path + ": latency_s is empty");
  EXPECT_ERROR(read(header + "L4,add,fp32,1000,1e-5\n", "L40S"), kInput,
               path + ": its rows are of L4 (1), none is of nvidia-l40s, which --gpu names");
  EXPECT_ERROR(read(header + "L4,add,fp32,1000,\nL4,add,fp32,10,\n", "L4"), kInput,
               "holds no measured kernel: " + path + ": latency_s is empty (2 rows)");
  EXPECT_ERROR(read("a,b\n1,2\n", "L4"), kInput, "the columns are of no known layout");
  EXPECT_EQ(read(header + "L4,add,fp32,1000000,1e-4\n,,,,\n\n,,,,\n", "L4").report,
            std::vector<std::string>{"left out " + path + ": the row is empty (2 rows)"});
  // A few rows of another card in the file are left out, and said so.
  const CalibrationData mixed =
      read(header + "L4,add,fp32,1000000,1e-4\nT4,add,fp32,1000000,1e-4\n", "L4");
  EXPECT_EQ(mixed.rows.size(), 1u);
  EXPECT_EQ(mixed.report[0], "left out " + path + ": rows of T4 (1), which is not nvidia-l4");
}

TEST(CalibrationData, ADeviceFileIsFoundByTheIdThatSuggestPrints) {
  const TemporaryFolder folder;
  Json json = Json::parse(embedded_files("devices/nvidia-l4").front().content);
  json["id"] = "my-card";
  json["aliases"] = {"My Card"};
  const auto device = (folder.path() / "mine.json").string();
  write_file(device, json.dump());
  write_file(folder.path() / "few.csv",
             "gpu,op,dtype,n,latency_s\nmy-card,add,fp32,1000000,1e-4\n"
             "my card,add,fp32,1000000,1e-4\n");
  const CalibrationData data = read_calibration_data({(folder.path() / "few.csv").string()},
                                                     find_device(device), device, load_weights(""));
  EXPECT_EQ(data.rows.size(), 2u);
}

}  // namespace
}  // namespace tilecast
