//! The sources of a package, found as the compiler finds them.

use std::path::{Path, PathBuf};

use syn::{Attribute, Expr, ExprLit, Item, Lit};

use super::find::{self, is_for_tests};
use super::mutation::Mutation;
use crate::{Result, files};

/// A file of a package, relative to it, with its text.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) file: String,
    /// The modules around its items.
    pub(crate) module: Vec<String>,
    pub(crate) text: String,
}

/// Returns the files of the package in this directory, without modules for tests or models.
pub(crate) fn of(package: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let roots = ["src/lib.rs", "src/main.rs"].map(Path::new);
    for root in roots.into_iter().filter(|root| package.join(root).exists()) {
        read(package, root, Path::new("src"), &mut sources)?;
    }
    Ok(sources)
}

fn read(package: &Path, file: &Path, modules: &Path, sources: &mut Vec<Source>) -> Result {
    let path = package.join(file);
    let text = files::read(&path)?;
    // Most files declare no module, and parsing is most of the time of this function.
    let is_leaf = !text.lines().any(|line| line.contains("mod ") && line.contains(';'));
    let items = if is_leaf { Ok(Vec::new()) } else { syn::parse_file(&text).map(|syntax| syntax.items) };
    let items = items.map_err(|error| format!("{}: {error}", path.display()))?;
    let module = modules.iter().skip(1).map(|name| name.to_string_lossy().into_owned()).collect();
    sources.push(Source { file: file.to_string_lossy().into_owned(), module, text });
    for item in items {
        if let Item::Mod(module) = item
            && module.content.is_none()
            && !is_for_tests(&module.attrs)
        {
            let inside = modules.join(module.ident.to_string());
            let beside: PathBuf = inside.with_extension("rs");
            let by_attribute = module.attrs.iter().find_map(named).map(|name| file.with_file_name(name));
            let usual = || if package.join(&beside).exists() { beside } else { inside.join("mod.rs") };
            let file = by_attribute.unwrap_or_else(usual);
            // A file that exists only for other platforms may be named by `#[cfg_attr]`.
            if package.join(&file).exists() {
                read(package, &file, &inside, sources)?;
            }
        }
    }
    Ok(())
}

/// Returns the value of `#[path]`.
fn named(attribute: &Attribute) -> Option<String> {
    let value = attribute.meta.require_name_value().ok().filter(|meta| meta.path.is_ident("path"))?;
    match &value.value {
        Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) => Some(name.value()),
        _ => None,
    }
}

/// Returns all mutations of a package.
pub(crate) fn mutations(package: &'static str, sources: &[Source]) -> Result<Vec<Mutation>> {
    let mut all = Vec::new();
    for Source { file, text, .. } in sources {
        all.extend(find::mutations(package, file, text)?);
    }
    Ok(all)
}
