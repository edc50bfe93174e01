# Writes a C++ source that holds the numbers of the files of data/laws, so that the start of a
# program parses no JSON. What is checked is checked by ConstantTable::read, in a test.
# cmake -DFOLDER=<data/laws> -DLAWS=<names> -DOUT=<file> -P laws.cmake
separate_arguments(LAWS UNIX_COMMAND "${LAWS}")
set(numbers "")
set(count 0)
set(names "")

# The numbers of a value: of a number, or of a list of numbers or of lists.
function(append_numbers json)
  string(JSON type TYPE "${json}" value)
  if(type STREQUAL "NUMBER")
    string(JSON number GET "${json}" value)
    set(all ${number})
  else()
    string(JSON list GET "${json}" value)
    string(REGEX MATCHALL "[-+.eE0-9]+" all "${list}")
  endif()
  list(LENGTH all length)
  list(JOIN all ", " text)
  set(first ${count})
  math(EXPR count "${count} + ${length}")
  set(numbers "${numbers}    ${text},\n" PARENT_SCOPE)
  set(count ${count} PARENT_SCOPE)
  set(row "${first}, ${length}" PARENT_SCOPE)
endfunction()

function(append_group json prefix)
  string(JSON members LENGTH "${json}")
  math(EXPR last "${members} - 1")
  foreach(i RANGE ${last})
    string(JSON key MEMBER "${json}" ${i})
    if(key STREQUAL "what" OR key STREQUAL "source")
      continue()
    endif()
    string(JSON entry GET "${json}" "${key}")
    string(JSON value ERROR_VARIABLE none GET "${entry}" value)
    if(none)
      append_group("${entry}" "${prefix}${key}.")
    else()
      append_numbers("${entry}")
      list(APPEND names "${prefix}${key} ${row}")
    endif()
  endforeach()
  set(numbers "${numbers}" PARENT_SCOPE)
  set(count ${count} PARENT_SCOPE)
  set(names "${names}" PARENT_SCOPE)
endfunction()

foreach(law IN LISTS LAWS)
  file(READ "${FOLDER}/${law}.json" text)
  string(JSON constants GET "${text}" constants)
  append_group("${constants}" "${law}.")
endforeach()
list(SORT names)
list(TRANSFORM names REPLACE "^([^ ]+) (.*)$" "    {\"\\1\", \\2},")
list(JOIN names "\n" rows)
file(WRITE "${OUT}" "// Written by cmake/laws.cmake.
#include \"laws/constants.h\"

namespace tilecast {
namespace {

constexpr double kNumbers[] = {
${numbers}};

constexpr StoredConstant kConstants[] = {
${rows}
};

}  // namespace

std::span<const StoredConstant> stored_constants() { return kConstants; }
std::span<const double> stored_numbers() { return kNumbers; }

}  // namespace tilecast
")
