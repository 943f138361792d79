//! The sources of a package, found as the compiler finds them.

use std::fs;
use std::path::{Path, PathBuf};

use syn::Item;

use super::find::{self, is_for_tests};
use super::mutation::Mutation;
use crate::Result;

/// A file of a package, relative to it, with its text.
pub(super) struct Source {
    pub(super) file: String,
    pub(super) text: String,
}

/// The files of the package in this directory, without modules that are for tests or models.
pub(super) fn of(package: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    read(package, Path::new("src/lib.rs"), Path::new("src"), &mut sources)?;
    Ok(sources)
}

fn read(package: &Path, file: &Path, modules: &Path, sources: &mut Vec<Source>) -> Result {
    let path = package.join(file);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let syntax = syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    sources.push(Source { file: file.to_string_lossy().into_owned(), text });
    for item in syntax.items {
        if let Item::Mod(module) = item
            && module.content.is_none()
            && !is_for_tests(&module.attrs)
        {
            let inside = modules.join(module.ident.to_string());
            let beside: PathBuf = inside.with_extension("rs");
            let file = if package.join(&beside).exists() { beside } else { inside.join("mod.rs") };
            read(package, &file, &inside, sources)?;
        }
    }
    Ok(())
}

/// All mutations of a package.
pub(super) fn mutations(package: &'static str, sources: &[Source]) -> Result<Vec<Mutation>> {
    let mut all = Vec::new();
    for Source { file, text } in sources {
        all.extend(find::mutations(package, file, text)?);
    }
    Ok(all)
}
