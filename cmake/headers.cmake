# Libraries that are used as headers: the system's, or else those that tools/sdist.sh has put into
# third_party of a source distribution, with their licences.
# package: of find_package; target: that it defines; folder: its headers in third_party; debian: its package there.
macro(tilecast_find_headers package target folder debian)
  find_package(${package} QUIET NO_MODULE)
  if(NOT TARGET ${target})
    if(NOT EXISTS ${PROJECT_SOURCE_DIR}/third_party/${folder})
      message(FATAL_ERROR "The headers of ${package} were not found (Debian: ${debian})")
    endif()
    string(REPLACE "::" "_" headers ${target})
    add_library(${headers}_headers INTERFACE)
    target_include_directories(${headers}_headers SYSTEM INTERFACE ${PROJECT_SOURCE_DIR}/third_party/${folder})
    add_library(${target} ALIAS ${headers}_headers)
    message(STATUS "${package}: the headers in third_party")
  endif()
endmacro()

tilecast_find_headers(fmt fmt::fmt fmt libfmt-dev)
if(TARGET fmt_fmt_headers)
  target_compile_definitions(fmt_fmt_headers INTERFACE FMT_HEADER_ONLY)
endif()
tilecast_find_headers(nlohmann_json nlohmann_json::nlohmann_json nlohmann nlohmann-json3-dev)
tilecast_find_headers(Eigen3 Eigen3::Eigen eigen libeigen3-dev)
if(NOT SKBUILD)
  # Of the program only.
  find_package(CLI11 REQUIRED)
  find_package(Boost 1.74 CONFIG REQUIRED)  # Asio and Beast, headers: connections of the service
endif()
