# Writes a C++ source and an assembler source that hold the files of a data folder.
# cmake -DDATA=<folder> [-DREPLACED_BY=<folder of files that are taken instead>] -DFILES=<relative paths> -DFUNCTION=<name of
# src/base/embedded.h> -DOUT=<prefix> -P embed.cmake
separate_arguments(FILES UNIX_COMMAND "${FILES}")
list(SORT FILES)
set(asm "    .section .rodata\n")
set(decls "")
set(rows "")
set(index 0)
foreach(file IN LISTS FILES)
  set(path "${DATA}/${file}")
  if(REPLACED_BY AND EXISTS "${REPLACED_BY}/${file}")
    set(path "${REPLACED_BY}/${file}")
  endif()
  string(APPEND asm "    .global tilecast_${FUNCTION}_${index}\n    .global tilecast_${FUNCTION}_${index}_end\n"
    "    .balign 16\ntilecast_${FUNCTION}_${index}:\n    .incbin \"${path}\"\n"
    "tilecast_${FUNCTION}_${index}_end:\n    .byte 0\n")
  string(APPEND decls "extern const char tilecast_${FUNCTION}_${index}[];\nextern const char tilecast_${FUNCTION}_${index}_end[];\n")
  string(APPEND rows "      {\"${file}\", {tilecast_${FUNCTION}_${index}, static_cast<size_t>(tilecast_${FUNCTION}_${index}_end - tilecast_${FUNCTION}_${index})}},\n")
  math(EXPR index "${index} + 1")
endforeach()
string(APPEND asm "    .section .note.GNU-stack,\"\",%progbits\n")
file(WRITE "${OUT}.S" "${asm}")
file(WRITE "${OUT}.cc" "// Written by cmake/embed.cmake.
#include \"base/embedded.h\"

extern \"C\" {
${decls}}

namespace tilecast {

std::vector<EmbeddedFile> ${FUNCTION}(std::string_view prefix) {
  const EmbeddedFile all[] = {
${rows}  };
  std::vector<EmbeddedFile> result;
  for (const EmbeddedFile& file : all) {
    if (file.path.substr(0, prefix.size()) == prefix) result.push_back(file);
  }
  return result;
}

}  // namespace tilecast
")
