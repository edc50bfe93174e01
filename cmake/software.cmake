# Writes a C++ source that holds the values of the files of data/software, so that the start of a
# program parses no JSON. Units, sources and unknown keys are checked by read_software, in a test.
# cmake -DFOLDER=<data/software> -DNAMES=<names> -DOUT=<file> -P software.cmake
separate_arguments(NAMES UNIX_COMMAND "${NAMES}")
set(rows "")

# A literal of the value under `key`.
function(literal result json key)
  string(JSON type TYPE "${json}" ${key})
  string(JSON value GET "${json}" ${key})
  if(type STREQUAL "STRING")
    set(value "R\"_(${value})_\"")
  elseif(type STREQUAL "BOOLEAN")
    if(value)
      set(value true)
    else()
      set(value false)
    endif()
  elseif(type STREQUAL "NUMBER")
    if(NOT value MATCHES "[.eE]")
      string(APPEND value ".0")
    endif()
  else()
    message(FATAL_ERROR "data/software: ${key} is no word, number or truth value")
  endif()
  set(${result} "${value}" PARENT_SCOPE)
endfunction()

foreach(name IN LISTS NAMES)
  file(READ "${FOLDER}/${name}.json" text)
  string(JSON members LENGTH "${text}")
  math(EXPR last "${members} - 1")
  foreach(i RANGE ${last})
    string(JSON key MEMBER "${text}" ${i})
    string(JSON type TYPE "${text}" ${key})
    string(JSON entry GET "${text}" ${key})
    if(type STREQUAL "OBJECT")
      string(JSON count LENGTH "${entry}")
      math(EXPR last_entry "${count} - 1")
      foreach(j RANGE ${last_entry})
        string(JSON member MEMBER "${entry}" ${j})
        string(JSON object GET "${entry}" ${member})
        literal(value "${object}" value)
        string(APPEND rows "    {\"${name}\", \"${key}\", \"${member}\", ${value}},\n")
      endforeach()
    elseif(key STREQUAL "earlier")
      string(JSON count LENGTH "${entry}")
      math(EXPR last_entry "${count} - 1")
      set(base "${name}")
      foreach(j RANGE ${last_entry})
        string(JSON object GET "${entry}" ${j})
        string(JSON before GET "${object}" before)
        string(APPEND rows "    {\"${name}<${before}\", \"\", \"based_on\", \"${base}\"},\n")
        set(base "${name}<${before}")
        foreach(section traits costs)
          string(JSON members_of ERROR_VARIABLE none LENGTH "${object}" ${section})
          if(none STREQUAL "NOTFOUND")
            math(EXPR last_member "${members_of} - 1")
            foreach(k RANGE ${last_member})
              string(JSON member MEMBER "${object}" ${section} ${k})
              string(JSON of_member GET "${object}" ${section} ${member})
              literal(value "${of_member}" value)
              string(APPEND rows "    {\"${base}\", \"${section}\", \"${member}\", ${value}},\n")
            endforeach()
          endif()
        endforeach()
      endforeach()
    elseif(type STREQUAL "ARRAY")
      string(JSON count LENGTH "${entry}")
      if(count GREATER 0)
        math(EXPR last_entry "${count} - 1")
        foreach(j RANGE ${last_entry})
          string(JSON object GET "${entry}" ${j})
          string(JSON version GET "${object}" version)
          literal(value "${object}" source)
          string(APPEND rows "    {\"${name}\", \"${key}\", \"${version}\", ${value}},\n")
        endforeach()
      endif()
    elseif(NOT key STREQUAL "schema_version")
      literal(value "${text}" ${key})
      string(APPEND rows "    {\"${name}\", \"\", \"${key}\", ${value}},\n")
    endif()
  endforeach()
endforeach()

file(WRITE "${OUT}" "// Written by cmake/software.cmake.
#include \"software/software.h\"

namespace tilecast {

std::span<const SoftwareValue> stored_software() {
  static constexpr SoftwareValue kValues[] = {
${rows}  };
  return kValues;
}

}  // namespace tilecast
")
