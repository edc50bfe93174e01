# Packages of Debian, by CPack (tools/package_deb.sh): `tilecast` with the program, `libtilecast-dev` with library and headers.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tilecast)
set(CPACK_PACKAGE_VENDOR "The Tilecast authors")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The Tilecast authors <tilecast@localhost>")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME tilecast)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
# XGBoost trains weights, Cbc allocates jobs; both are loaded when they are needed.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "libxgboost0, coinor-libcbc3")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "Forecasts of deep-learning time, memory and energy
 Tilecast forecasts how long a deep-learning model takes and how much memory and energy it
 needs on GPUs and clusters that are not at hand, from its config and a data sheet.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtilecast-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libfmt-dev, liblzma-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Library, headers and CMake package of Tilecast
 find_package(tilecast) gives tilecast::tilecast, which forecasts; its component train makes weights.")
include(CPack)

# Debian's names of the licence's file.
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tilecast RENAME copyright COMPONENT program)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libtilecast-dev RENAME copyright COMPONENT development)
