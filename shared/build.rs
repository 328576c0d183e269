//! Copies the data files without their comments, which would be part of every program.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=data");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    for file in fs::read_dir("data")? {
        let file = file?;
        let text = fs::read_to_string(file.path())?;
        let rows = text.split_inclusive('\n').skip_while(|line| line.starts_with('#'));
        fs::write(Path::new(&out).join(file.file_name()), rows.collect::<String>())?;
    }
    Ok(())
}
