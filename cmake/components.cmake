# Components that a build may leave out. Their sources are left out, and *_left_out.cc, which say so to whoever
# asks for the component, stand in for them.
option(TILECAST_ACCELERATOR "Forecast accelerators that are described by their objects" ON)
option(TILECAST_TUNING "Rank MIOpen's solvers: 'tilecast tune', and convolutions of AMD's GPUs" ON)

set(tilecast_components ACCELERATOR TUNING)
set(tilecast_ACCELERATOR_sources "^src/(accelerator|scenario/accelerator)/|^src/evaluate/accelerator\\.cc$")
set(tilecast_ACCELERATOR_stays "^src/accelerator/names\\.cc$|accelerator_left_out\\.cc$")
set(tilecast_ACCELERATOR_stands_in "accelerator_left_out\\.cc$")
set(tilecast_TUNING_sources "^src/(tuning|scenario/tuning)/|^src/evaluate/tuning\\.cc$|^src/predict/miopen\\.cc$")
set(tilecast_TUNING_stays "(tuning|miopen)_left_out\\.cc$")
set(tilecast_TUNING_stands_in ${tilecast_TUNING_stays})

# The sources of this build.
function(tilecast_without_left_out list)
  set(sources ${${list}})
  foreach(component IN LISTS tilecast_components)
    if(TILECAST_${component})
      list(FILTER sources EXCLUDE REGEX ${tilecast_${component}_stands_in})
    else()
      set(stay ${sources})
      list(FILTER stay INCLUDE REGEX ${tilecast_${component}_stays})
      list(FILTER sources EXCLUDE REGEX ${tilecast_${component}_sources})
      list(APPEND sources ${stay})
      list(REMOVE_DUPLICATES sources)
    endif()
  endforeach()
  set(${list} ${sources} PARENT_SCOPE)
endfunction()
