//! Compiles the only C code, which works inside libjpeg (`src/jpeg/huffman.c`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "fast-huffman")]
    huffman();
}

#[cfg(feature = "fast-huffman")]
fn huffman() {
    let source = "src/jpeg/huffman.c";
    println!("cargo::rerun-if-changed={source}");
    // libjpeg's crate exports the path of its headers.
    let headers = std::env::var_os("DEP_JPEG_INCLUDE").unwrap_or_default();
    cc::Build::new()
        .file(source)
        .includes(std::env::split_paths(&headers))
        .flag_if_supported("-fexceptions")
        .opt_level(3)
        .compile("anyrec_huffman");
}
