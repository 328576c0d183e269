//! Has Cargo embed the web app anew whenever Trunk has built it.

fn main() -> std::io::Result<()> {
    // Cargo takes a path that does not exist for one that always changed, and would rebuild this crate every time
    // until the web app is there: an empty folder (ignored by Git) is quiet.
    std::fs::create_dir_all("../dist")?;
    println!("cargo::rerun-if-changed=../dist");
    Ok(())
}
