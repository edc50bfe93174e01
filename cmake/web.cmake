# Writes a C++ source that holds the script of reports, which is the modules of web/ one after the
# other, and their style, with the hashes that their Content-Security-Policy names.
# cmake -DWEB=<folder> -DSTYLES=<names> -DMODULES=<names in the order of their imports> -DOUT=<file> -P web.cmake
cmake_minimum_required(VERSION 3.21)
separate_arguments(MODULES UNIX_COMMAND "${MODULES}")
separate_arguments(STYLES UNIX_COMMAND "${STYLES}")

# "sha256-" and the hash in base64, as Content-Security-Policy writes it.
function(policy_hash text result)
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  string(SHA256 hex "${text}")
  set(out "")
  # 32 bytes: ten groups of three, and two bytes that are filled up with zeros.
  foreach(group RANGE 10)
    math(EXPR at "${group} * 6")
    string(SUBSTRING "${hex}00" ${at} 6 six)
    math(EXPR value "0x${six}")
    foreach(shift 18 12 6 0)
      math(EXPR digit "(${value} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 letter)
      string(APPEND out ${letter})
    endforeach()
  endforeach()
  string(SUBSTRING ${out} 0 43 out)
  set(${result} "sha256-${out}=" PARENT_SCOPE)
endfunction()

set(delimiter tilecast_web)
function(as_literal text result)
  string(FIND "${text}" ")${delimiter}\"" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "a file of web/ contains )${delimiter}\"")
  endif()
  set(${result} "R\"${delimiter}(${text})${delimiter}\"" PARENT_SCOPE)
endfunction()

# Modules share one scope in a report: imports go, exports become plain declarations.
set(script "")
foreach(name IN LISTS MODULES)
  file(READ ${WEB}/${name} text)
  string(REGEX REPLACE "(^|\n)import [^;]*;" "\\1" text "${text}")
  string(REGEX REPLACE "(^|\n)export {[^;]*;" "\\1" text "${text}")
  string(REGEX REPLACE "(^|\n)export " "\\1" text "${text}")
  string(APPEND script "${text}\n")
endforeach()
set(style "")
foreach(name IN LISTS STYLES)
  file(READ ${WEB}/${name} text)
  string(APPEND style "${text}")
endforeach()
foreach(kind script style)
  if("${${kind}}" MATCHES "</${kind}")
    message(FATAL_ERROR "a file of web/ ends the ${kind} that it would be part of")
  endif()
  policy_hash("${${kind}}" ${kind}_hash)
  as_literal("${${kind}}" ${kind}_literal)
endforeach()

file(WRITE "${OUT}" "// Written by cmake/web.cmake.
#include \"report/page_script.h\"

namespace tilecast {

std::string_view report_script() { return ${script_literal}; }
std::string_view report_script_hash() { return \"${script_hash}\"; }
std::string_view report_style() { return ${style_literal}; }
std::string_view report_style_hash() { return \"${style_hash}\"; }

}  // namespace tilecast
")
