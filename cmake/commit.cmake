# Writes a source that says which commit was built: git's where the sources are a clone, "+changes" where files differ from it; that
# of commit.txt where they are an archive, which git has written there; else nothing.
# cmake -DSOURCE=<folder> -DGIT=<program, may be empty> -DOUT=<file> -P commit.cmake
set(commit "")
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} rev-parse HEAD WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${GIT} diff-index --quiet HEAD WORKING_DIRECTORY ${SOURCE} RESULT_VARIABLE changed ERROR_QUIET)
else()
  file(READ ${SOURCE}/cmake/commit.txt commit)
  set(changed 0)
endif()
string(STRIP "${commit}" commit)
if(commit MATCHES "^[0-9a-f]+$")
  string(SUBSTRING "${commit}" 0 12 commit)
  if(NOT changed EQUAL 0)
    string(APPEND commit "+changes")
  endif()
else()
  set(commit "")
endif()
set(text "// Written by cmake/commit.cmake.
#include \"base/commit.h\"

namespace tilecast {

std::string_view built_commit() { return \"${commit}\"; }

}  // namespace tilecast
")
set(before "")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
