//! Reading source files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;

/// Returns the text of a file; an error names the file.
pub fn read(path: &Path) -> Result<String> {
    Ok(fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?)
}

/// Returns the files below a directory with one of these extensions, by path, except build
/// products. A directory that does not exist has none.
pub fn below(directory: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry?.path();
            let extension = path.extension().unwrap_or_default();
            if extensions.iter().any(|wanted| extension == *wanted) {
                found.push(path);
            } else if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                open.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_files_below_directory_by_extension() {
        let scratch = crate::scratch::Scratch::new("files-test").unwrap();
        for path in ["a.rs", "b/c.rs", "b/d.txt", "target/e.rs"] {
            let path = scratch.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text").unwrap();
        }
        let found = below(scratch.path(), &["rs"]).unwrap();
        assert_eq!(found, ["a.rs", "b/c.rs"].map(|path| scratch.path().join(path)));
        assert_eq!(read(&found[0]).unwrap(), "text");
        assert!(read(Path::new("/no/file")).unwrap_err().to_string().starts_with("/no/file: "));
        assert!(below(Path::new("/no/directory"), &["rs"]).unwrap().is_empty());
    }
}
