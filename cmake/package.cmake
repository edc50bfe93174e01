# The installed package: find_package(tilecast) gives tilecast::tilecast, which forecasts;
# find_package(tilecast COMPONENTS train) gives tilecast::train beside it, which makes weights.
# Each is one archive of the objects of its folders.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tilecast)

# The folders that the given ones include, themselves among them.
function(tilecast_reachable result)
  set(found)
  set(queue ${ARGN})
  while(queue)
    list(POP_FRONT queue layer)
    if(NOT layer IN_LIST found)
      list(APPEND found ${layer})
      get_property(below GLOBAL PROPERTY tilecast_layer_${layer})
      list(TRANSFORM below REPLACE "^tilecast_" "")
      list(APPEND queue ${below})
    endif()
  endwhile()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# FOLDERS: whose objects the archive holds. USES: libraries that a program must link beside it.
function(tilecast_archive name)
  cmake_parse_arguments(ARG "" "" "FOLDERS;USES" ${ARGN})
  set(objects ${ARG_FOLDERS})
  list(TRANSFORM objects REPLACE "(.+)" "$<TARGET_OBJECTS:tilecast_\\1>")
  add_library(tilecast_${name}_archive STATIC ${objects})
  set_target_properties(tilecast_${name}_archive PROPERTIES EXPORT_NAME ${name} LINKER_LANGUAGE CXX
    ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/package)
  target_include_directories(tilecast_${name}_archive INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(tilecast_${name}_archive INTERFACE cxx_std_20)
  target_link_libraries(tilecast_${name}_archive PRIVATE ${ARG_USES})
  install(TARGETS tilecast_${name}_archive EXPORT tilecast-${name} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT development)
  install(EXPORT tilecast-${name} NAMESPACE tilecast:: FILE ${name}-targets.cmake DESTINATION ${package_folder}
    COMPONENT development)
  # Whoever builds the program can install.
  add_dependencies(tilecast tilecast_${name}_archive)
endfunction()

tilecast_reachable(forecast_folders many)
tilecast_archive(tilecast FOLDERS ${forecast_folders} commit USES fmt::fmt)
set_target_properties(tilecast_tilecast_archive PROPERTIES OUTPUT_NAME tilecast)

tilecast_reachable(train_folders evaluate train)
list(REMOVE_ITEM train_folders ${forecast_folders})
tilecast_archive(train FOLDERS ${train_folders}
  USES tilecast_tilecast_archive ${xz_library} Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(tilecast_train_archive PROPERTIES OUTPUT_NAME tilecast_train)

install(DIRECTORY include/tilecast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
configure_package_config_file(cmake/tilecast-config.cmake.in ${PROJECT_BINARY_DIR}/tilecast-config.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tilecast-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tilecast-config.cmake ${PROJECT_BINARY_DIR}/tilecast-config-version.cmake
  DESTINATION ${package_folder} COMPONENT development)

# The program with its manual page, completion and documents.
install(TARGETS tilecast RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
if(NOT CMAKE_CROSSCOMPILING)
  install(FILES ${shell_files}/tilecast.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
  install(FILES ${shell_files}/tilecast DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
  install(FILES ${shell_files}/_tilecast DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT program)
  install(FILES ${shell_files}/tilecast.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
endif()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY docs/schema DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
