# The tests: programs of unit tests, cases, scripts. Labels: fast (after each build), slow (not under sanitizers).
find_package(GTest REQUIRED)
include(GoogleTest)
# The unit tests: the *_test.cc of src, found by folder scan, but those of programs of their own below.
file(GLOB_RECURSE unit_tests CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src/*_test.cc)
list(FILTER unit_tests EXCLUDE REGEX
     "^src/(accelerator/|allocation/|scenario/(threads_test|diffusion/)|command/|embedding/|placement/|plan/|profile/|sim/step_bound_test|tuning/)")
# The ways to train that have a program of their own.
set(training_tests src/sim/pipeline_schedule_test.cc src/scenario/parallel/backward_split_test.cc
  src/scenario/parallel/context_exchange_test.cc src/scenario/pass/teacher_test.cc)
list(REMOVE_ITEM unit_tests ${training_tests})
# A program of tests. It runs in TILECAST_TEST_SHARDS processes, one that is SMALL in one: starting one takes longer than most
# tests. LONG and SLOW are patterns of gtest: tests that take seconds run in a process of their own, which is not fast; one
# for all SLOW tests has the label slow.
set(TILECAST_TEST_SHARDS "2" CACHE STRING "Processes that each program of tests is divided into; 0: one for each test")
set(TILECAST_TEST_OPTIONS "" CACHE STRING "Further options of the compiler for tests: -O0 compiles them in half the time under sanitizers")
function(tilecast_test_program name)
  cmake_parse_arguments(ARG "SMALL" "LONG;SLOW;TIMEOUT;LABELS" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE tests/support)
  target_compile_options(${name} PRIVATE ${TILECAST_TEST_OPTIONS})
  target_link_libraries(${name} PRIVATE ${ARG_USES} GTest::gtest_main)
  set(properties TIMEOUT ${ARG_TIMEOUT})
  if(NOT ARG_TIMEOUT)
    set(properties TIMEOUT 600)
  endif()
  if(ARG_LABELS)
    list(APPEND properties LABELS ${ARG_LABELS})
  endif()
  if(NOT TILECAST_TEST_SHARDS)
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
    return()
  endif()
  set(processes ${TILECAST_TEST_SHARDS})
  if(ARG_SMALL)
    set(processes 1)
  endif()
  math(EXPR last "${processes} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${name}.${shard} COMMAND ${name} --gtest_brief=1 --gtest_filter=-${ARG_LONG}:${ARG_SLOW})
    set_tests_properties(${name}.${shard} PROPERTIES ${properties}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${processes};GTEST_SHARD_INDEX=${shard}")
  endforeach()
  if(ARG_LONG)
    add_test(NAME ${name}.long COMMAND ${name} --gtest_brief=1 --gtest_filter=${ARG_LONG})
    list(REMOVE_ITEM properties LABELS fast)
    set_tests_properties(${name}.long PROPERTIES ${properties})
  endif()
  if(ARG_SLOW)
    add_test(NAME ${name}.slow COMMAND ${name} --gtest_brief=1 --gtest_filter=${ARG_SLOW})
    set_tests_properties(${name}.slow PROPERTIES TIMEOUT 600 LABELS slow)
  endif()
endfunction()

tilecast_test_program(tilecast_tests
  SOURCES ${unit_tests} tests/graphs_test.cc tests/model_types_test.cc tests/published_test.cc
    tests/snapshot/moved.cc tests/snapshot/moved_test.cc
  USES tilecast_evaluate tilecast_many tilecast_train LABELS fast TIMEOUT 1500
  LONG "RecommendationForecast.*:OnnxInputs.*:OnnxBudget.*:Locale.*:Xz.*"
  SLOW "Batches.*:PassCache.ForecastsDoNotDependOnEarlierOnes")
set_source_files_properties(src/laws/constants_test.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
  COMPILE_DEFINITIONS TILECAST_LAWS="${PROJECT_SOURCE_DIR}/data/laws")
set_source_files_properties(tests/model_types_test.cc PROPERTIES
  COMPILE_DEFINITIONS TILECAST_MODEL_TYPES="${PROJECT_SOURCE_DIR}/tests/model_types")

# Programs of their own: most of them link little and are soon built.
file(GLOB command_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/command/*_test.cc)
tilecast_test_program(command_tests SMALL SOURCES ${command_tests} USES tilecast_command LABELS fast)
if(TILECAST_ACCELERATOR)
  file(GLOB accelerator_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/accelerator/*_test.cc)
  tilecast_test_program(accelerator_tests SOURCES ${accelerator_tests} USES tilecast_accelerator)
endif()
tilecast_test_program(placement_tests SMALL SOURCES src/embedding/embedding_test.cc src/placement/placement_test.cc
  USES tilecast_placement)
file(GLOB allocation_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/allocation/*_test.cc)
tilecast_test_program(allocation_tests SMALL SOURCES ${allocation_tests} USES tilecast_allocation SLOW "Allocation.OfTenThousandJobs*")
if(TILECAST_TUNING)
  file(GLOB tuning_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tuning/*_test.cc)
  tilecast_test_program(tuning_tests SOURCES ${tuning_tests} USES tilecast_tuning LABELS fast)
endif()
file(GLOB profile_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/profile/*_test.cc)
tilecast_test_program(profile_tests SMALL SOURCES ${profile_tests} USES tilecast_profile LABELS fast)
tilecast_test_program(diffusion_tests SMALL SOURCES src/scenario/diffusion/diffusion_test.cc USES tilecast_scenario LABELS fast)
set_source_files_properties(src/scenario/diffusion/diffusion_test.cc PROPERTIES
  COMPILE_DEFINITIONS TILECAST_MODELS="${PROJECT_SOURCE_DIR}/data/models")
tilecast_test_program(training_tests SMALL SOURCES ${training_tests} USES tilecast_scenario LABELS fast)
set_source_files_properties(src/sim/pipeline_schedule_test.cc PROPERTIES
  COMPILE_DEFINITIONS TILECAST_PIPELINE_ORDERS="${PROJECT_SOURCE_DIR}/tests/data/pipeline_orders.csv")
# All fuzz targets on their seeds.
include(cmake/fuzz_targets.cmake)
set(accepts_all_onnx --all)  # every seed is translated
set(accepts_all_sweep --all)
foreach(target IN LISTS fuzz_targets)
  add_executable(corpus_${target} tests/fuzz/fuzz_${target}.cc tests/fuzz/run_corpus.cc)
  target_link_libraries(corpus_${target} PRIVATE ${fuzz_uses_${target}})
  set_target_properties(corpus_${target} PROPERTIES UNITY_BUILD OFF)  # a weak symbol of one is defined in the other
  add_test(NAME corpus_${target} COMMAND corpus_${target} ${accepts_all_${target}} ${PROJECT_SOURCE_DIR}/tests/fuzz/${target})
endforeach()
# Bounds against simulations, parts of a search against those of a forecast.
file(GLOB plan_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/plan/*_test.cc)
tilecast_test_program(plan_tests SOURCES ${plan_tests} src/sim/step_bound_test.cc USES tilecast_plan TIMEOUT 1500
  SLOW "Divisibility.OfEachCandidate*:*Plan.Pruning*:TrainingPlan.CandidatesAreThose*:StepBound.NeverExceeds*:ServingPlan.LoadThatIsLeftOut*")
set_source_files_properties(src/plan/divisibility_test.cc PROPERTIES
  COMPILE_DEFINITIONS TILECAST_MODELS="${PROJECT_SOURCE_DIR}/data/models")

# The façade's const functions from eight threads; a program of its own, so that it is soon built
# with -fsanitize=thread: cmake --preset clang, cmake --build --preset clang --target threads_tests.
tilecast_test_program(threads_tests SMALL SOURCES src/scenario/threads_test.cc USES tilecast_scenario tilecast_report LABELS fast)

# Without the names of nodes, forecasts are the same.
tilecast_test_program(names_tests SOURCES tests/names_test.cc USES tilecast_scenario LABELS slow TIMEOUT 600)

# Thousands of random requests against the laws that every forecast keeps.
tilecast_test_program(property_tests SOURCES tests/properties_test.cc USES tilecast_scenario tilecast_report
  LABELS slow TIMEOUT 600)

# Devices are ranked as their data sheets are, and forecasts do not jump.
tilecast_test_program(ranking_tests SOURCES tests/ranking_test.cc tests/few_rows_test.cc tests/growth_test.cc tests/more_rows_test.cc USES tilecast_scenario LABELS slow TIMEOUT 600)

# Forecasts of all bundled models, line by line: `snapshot FILE --write` after a change of numbers, `--report` shows how much they moved.
add_executable(snapshot tests/snapshot/snapshot.cc tests/snapshot/moved.cc)
target_link_libraries(snapshot PRIVATE tilecast_scenario)
if(TILECAST_TUNING)  # it has convolutions of AMD's GPUs
  add_test(NAME snapshot COMMAND snapshot ${PROJECT_SOURCE_DIR}/tests/snapshot/expected.txt)
  set_tests_properties(snapshot PROPERTIES LABELS fast)
endif()

# JSON schemas, Python's stubs and the reference page are those of the tables: tools/generate.sh.
add_executable(result_files tools/result_files.cc)
target_link_libraries(result_files PRIVATE tilecast_command fmt::fmt)
add_test(NAME result_files COMMAND result_files ${PROJECT_SOURCE_DIR} --check)
set_tests_properties(result_files PROPERTIES LABELS fast)

# The kit's kernels, run on the CPU, and its line protocol.
tilecast_test_program(measure_tests SMALL
  SOURCES measure/tests/kernels_test.cc measure/tests/request_test.cc measure/worker/request.cc LABELS fast)

find_package(Python3 COMPONENTS Interpreter REQUIRED)
add_test(NAME measure_kit COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/measure/tests/test_kit.py)
set_tests_properties(measure_kit PROPERTIES LABELS slow)
add_test(NAME measure_round_trip COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/measure/tests/test_round_trip.py $<TARGET_FILE:tilecast>)
# The program with small weights that never change: new weights change no case. Its own embedded_files()
# and built_commit() take the place of those of the libraries.
tilecast_embed(embedded_for_cases REPLACED_BY ${PROJECT_SOURCE_DIR}/tests/data FILES ${data_files})
get_target_property(program_libraries tilecast LINK_LIBRARIES)
add_executable(tilecast_cases $<TARGET_OBJECTS:tilecast> ${PROJECT_BINARY_DIR}/embedded_for_cases.cc
  ${PROJECT_BINARY_DIR}/embedded_for_cases.S tests/support/no_commit.cc)
target_link_libraries(tilecast_cases PRIVATE ${program_libraries})
# A test for each case: `ctest --preset release -R case.forecast_table`.
file(GLOB cases CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cases/*.case)
if(NOT TILECAST_TUNING)
  list(FILTER cases EXCLUDE REGEX "miopen|amd_convolution")
endif()
set(left_out)
if(NOT TILECAST_ACCELERATOR OR NOT TILECAST_TUNING)
  set(left_out --left-out)
endif()
foreach(case IN LISTS cases)
  get_filename_component(name ${case} NAME_WE)
  add_test(NAME case.${name}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/run_cases.py $<TARGET_FILE:tilecast_cases> ${left_out} ${name})
  set_tests_properties(case.${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped")
endforeach()
# Searches of seconds take minutes under sanitizers; plan_tests and the smaller cases run the same code.
set_tests_properties(case.plan_training_gpus case.plan_experts case.plan_serving PROPERTIES LABELS slow)
foreach(name accelerator bad_usage forecast_does_not_fit forecast_training gpus help_forecast kernel_linear llm_prompt
    llm_server plan_training_one_configuration tune_problem)
  set_tests_properties(case.${name} PROPERTIES LABELS fast)
endforeach()
# A build without a component says so, and has no tests of the whole program, which show all of it.
if(NOT TILECAST_ACCELERATOR)
  add_test(NAME accelerator_left_out COMMAND tilecast forecast resnet-50 --gpu gemmini)
  set_tests_properties(accelerator_left_out PROPERTIES
    PASS_REGULAR_EXPRESSION "this build of Tilecast has no accelerators; build it with -DTILECAST_ACCELERATOR=ON")
endif()
if(NOT TILECAST_TUNING)
  add_test(NAME tuning_left_out COMMAND tilecast tune "gemm m=4096 n=512 k=1024 dtype=fp16" --gpu MI250X)
  set_tests_properties(tuning_left_out PROPERTIES
    PASS_REGULAR_EXPRESSION "this build of Tilecast has no tuning; build it with -DTILECAST_TUNING=ON")
endif()
if(left_out)
  return()
endif()
add_test(NAME bad_inputs COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/bad_inputs.py $<TARGET_FILE:tilecast>)
add_test(NAME budgets COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/budget_test.py $<TARGET_FILE:tilecast>)
set_tests_properties(bad_inputs budgets PROPERTIES LABELS slow)
add_test(NAME real_configs COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/check_configs.py $<TARGET_FILE:tilecast>)
set_tests_properties(real_configs PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped")
# Debian's Python is named: python3-jsonschema is its package.
find_program(SYSTEM_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
add_test(NAME cli COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/cli_test.py $<TARGET_FILE:tilecast>)
# Faults in the middle of each command that writes. A sanitizer wants to be the first library of a process.
add_library(faults MODULE tests/support/faults.cc)
target_link_libraries(faults PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(faults PROPERTIES UNITY_BUILD OFF)
target_compile_options(faults PRIVATE -fno-sanitize=all -U_FORTIFY_SOURCE)
add_test(NAME report_html COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/report_html_test.py $<TARGET_FILE:tilecast>)
add_test(NAME server COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/server_test.py $<TARGET_FILE:tilecast>)
add_test(NAME server_jobs COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/server_jobs_test.py $<TARGET_FILE:tilecast>)
add_test(NAME server_safety COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/server_safety_test.py $<TARGET_FILE:tilecast>)
# The page in a browser; skipped where Debian's chromium and chromium-driver or selenium are missing.
add_test(NAME page COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/page_test.py $<TARGET_FILE:tilecast>)
set_tests_properties(page PROPERTIES LABELS slow TIMEOUT 900 SKIP_REGULAR_EXPRESSION "^skipped")
add_test(NAME faults COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/faults_test.py $<TARGET_FILE:tilecast> $<TARGET_FILE:faults>)
set_tests_properties(faults PROPERTIES LABELS slow)
set(hardened)
foreach(piece FORTIFY STACK LINK ASSERTIONS PATHS)
  if(TILECAST_HARDEN_${piece})
    string(TOLOWER ${piece} word)
    list(APPEND hardened ${word})
  endif()
endforeach()
if(hardened)
  add_test(NAME hardening COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/hardening_test.py $<TARGET_FILE:tilecast>
    ${PROJECT_SOURCE_DIR} ${hardened})
  set_tests_properties(hardening PROPERTIES LABELS fast SKIP_REGULAR_EXPRESSION "^skipped")
endif()
add_test(NAME trace COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/trace_test.py $<TARGET_FILE:tilecast>)
# Every command of the README, guides and explanations, and every link; the pages that the program writes itself.
add_test(NAME docs COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/docs_test.py $<TARGET_FILE:tilecast>)
set_tests_properties(docs PROPERTIES LABELS slow)
add_test(NAME reference_pages COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/reference_pages.py $<TARGET_FILE:tilecast>)
add_test(NAME memory_against_pytorch COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/check_memory.py $<TARGET_FILE:tilecast>)
add_test(NAME memory_against_gpu COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/check_measured_memory.py $<TARGET_FILE:tilecast> --max-percent 6 --skip resnet-50)  # its workspaces of cuDNN are not counted
# Many small runs of what other tests run under sanitizers, too.
set_tests_properties(memory_against_pytorch memory_against_gpu PROPERTIES LABELS slow)
add_test(NAME caching_allocator COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/caching_allocator_test.py)
add_test(NAME install COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/install_test.py ${PROJECT_BINARY_DIR})
add_test(NAME schemas COMMAND ${SYSTEM_PYTHON} ${PROJECT_SOURCE_DIR}/tests/schema_test.py $<TARGET_FILE:tilecast>)
set_tests_properties(schemas PROPERTIES LABELS slow)
if(TARGET tilecast_core)
  add_test(NAME python_package COMMAND ${Python_EXECUTABLE} -m unittest discover -s ${PROJECT_SOURCE_DIR}/tests/python)
  # Ray, Spark and Dask each start several processes.
  add_test(NAME python_engines COMMAND ${Python_EXECUTABLE} -m unittest discover -s ${PROJECT_SOURCE_DIR}/tests/python -p engines_test.py)
  set_tests_properties(python_engines PROPERTIES LABELS slow RUN_SERIAL ON TIMEOUT 900)
  set_tests_properties(python_package python_engines PROPERTIES
    ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/python;TILECAST_PROGRAM=$<TARGET_FILE:tilecast>")
else()
  add_test(NAME python_package COMMAND ${CMAKE_COMMAND} -E echo "skipped: the Python package was not built, pybind11 is missing")
  set_tests_properties(python_package PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped")
endif()
add_test(NAME law_literals COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/law_literals.py)
add_test(NAME law_page COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/law_page.py --check)
add_test(NAME price_page COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/price_page.py --check)
add_test(NAME left_out_picture COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/left_out_picture.py)
add_test(NAME public_surface COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/surface_test.py)
set_tests_properties(public_surface PROPERTIES LABELS fast)
add_test(NAME bill_of_materials COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/sbom.py --check)
add_test(NAME layers COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_layers.py)
set_tests_properties(layers PROPERTIES LABELS fast)
add_test(NAME committed_errors COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/check_accuracy.py $<TARGET_FILE:tilecast>)
add_test(NAME flops_against_pytorch COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/pytorch/count_flops.py)
add_test(NAME onnx_against_configs COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/pytorch/compare_onnx.py $<TARGET_FILE:tilecast> --only resnet-50,mobilenet_v2 --exporters script)
add_test(NAME torch_import COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/torch_import_test.py $<TARGET_FILE:tilecast>)
add_test(NAME execution_trace COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/execution_trace_test.py $<TARGET_FILE:tilecast>)
set_tests_properties(torch_import execution_trace PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped")
set_tests_properties(committed_errors flops_against_pytorch onnx_against_configs PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped" LABELS slow)
# The longest start first, so that no core waits for one of them at the end.
set_tests_properties(cli measure_kit docs server server_jobs server_safety page faults PROPERTIES COST 100)
