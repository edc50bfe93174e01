# Libraries that come without a CMake package, as imported targets: tilecast::csv.
# The installed package uses this file too.
function(tilecast_find_library name)
  if(NOT TARGET tilecast::${name})
    find_library(TILECAST_LIB_${name} ${name} REQUIRED)
    mark_as_advanced(TILECAST_LIB_${name})
    add_library(tilecast::${name} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(tilecast::${name} PROPERTIES IMPORTED_LOCATION "${TILECAST_LIB_${name}}")
  endif()
endfunction()
