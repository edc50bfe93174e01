# The Python package: the module tilecast._core, linked with the library, and the files of
# python/tilecast. In the build folder lies a package that works in place (PYTHONPATH=build/release/python).
set(TILECAST_PYTHON_MODULES "" CACHE STRING "Modules that are built from headers alone, without the Pythons (tools/wheels.py): SUFFIX=FOLDERS:...;...")
set(TILECAST_PYBIND11 "" CACHE STRING "The headers of pybind11 for them")

# What every module has. The symbols of the library are of no use to others; without them, the module is loaded faster.
function(tilecast_python_module target)
  target_include_directories(${target} PRIVATE python)
  target_link_libraries(${target} PRIVATE tilecast_cli fmt::fmt)
  target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/python_module.map -Wl,-Bsymbolic)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/python_module.map)
  target_compile_definitions(${target} PRIVATE TILECAST_VERSION="${PROJECT_VERSION}")
endfunction()
file(GLOB python_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/bindings/*.cc)

if(TILECAST_PYTHON_MODULES)
  add_custom_target(tilecast_python_modules)
  foreach(module IN LISTS TILECAST_PYTHON_MODULES)
    string(REGEX MATCH "^(.*)=(.*)$" parsed "${module}")
    set(target tilecast_core_${CMAKE_MATCH_1})
    string(REPLACE ":" ";" folders "${CMAKE_MATCH_2}")
    add_library(${target} MODULE ${python_sources})
    tilecast_python_module(${target})
    target_include_directories(${target} SYSTEM PRIVATE ${TILECAST_PYBIND11} ${folders})
    set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME _core.${CMAKE_MATCH_1} CXX_VISIBILITY_PRESET hidden
      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/modules)
    add_dependencies(tilecast_python_modules ${target})
  endforeach()
  return()
endif()

if(Python3_EXECUTABLE AND NOT Python_EXECUTABLE)
  set(Python_EXECUTABLE ${Python3_EXECUTABLE})
endif()
find_package(Python 3.9 QUIET COMPONENTS Interpreter Development.Module)
if(Python_FOUND AND NOT pybind11_DIR)
  # The one of this Python's own packages, before Debian's.
  execute_process(COMMAND ${Python_EXECUTABLE} -m pybind11 --cmakedir OUTPUT_VARIABLE pybind11_folder
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(pybind11_ROOT ${pybind11_folder})
  endif()
endif()
set(PYBIND11_FINDPYTHON ON)
if(Python_FOUND)
  find_package(pybind11 2.10 CONFIG QUIET)
endif()
if(NOT pybind11_FOUND)
  if(SKBUILD)
    message(FATAL_ERROR "The Python package needs pybind11 and the headers of Python (Debian: pybind11-dev, python3-dev)")
  endif()
  message(STATUS "pybind11 or the headers of Python were not found: the Python package is not built")
  return()
endif()

pybind11_add_module(tilecast_core MODULE NO_EXTRAS ${python_sources})
tilecast_python_module(tilecast_core)
set_target_properties(tilecast_core PROPERTIES OUTPUT_NAME _core
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/tilecast)

# Beside the module, links to the package's files: a changed file needs no build.
file(GLOB python_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/tilecast/*)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/python/tilecast)
foreach(file IN LISTS python_files)
  get_filename_component(name ${file} NAME)
  if(NOT name STREQUAL "__pycache__")
    file(CREATE_LINK ${file} ${PROJECT_BINARY_DIR}/python/tilecast/${name} SYMBOLIC)
  endif()
endforeach()

if(SKBUILD)
  install(TARGETS tilecast_core LIBRARY DESTINATION tilecast COMPONENT python)
endif()
