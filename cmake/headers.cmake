# Libraries that are used as headers: the system's, or else those that tools/sdist.sh has put into
# third_party of a source distribution, with their licences.
option(TILECAST_BUNDLED_HEADERS "Use the headers in third_party even where the system has its own, as wheels do" OFF)
# package: of find_package; target: that it defines; folder: its headers in third_party; debian: its package there.
# Further arguments are those of find_package.
macro(tilecast_find_headers package target folder debian)
  if(NOT TILECAST_BUNDLED_HEADERS)
    find_package(${package} ${ARGN} QUIET NO_MODULE)
  endif()
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
# Of the program only.
tilecast_find_headers(CLI11 CLI11::CLI11 cli11 libcli11-dev)
tilecast_find_headers(Boost Boost::headers boost libboost-dev 1.74)  # Asio and Beast: connections of the service
if(TARGET Boost_headers_headers)
  # Asio 1.74 else looks for std::result_of, which C++20 has not.
  target_compile_definitions(Boost_headers_headers INTERFACE BOOST_ASIO_HAS_STD_INVOKE_RESULT)
endif()
