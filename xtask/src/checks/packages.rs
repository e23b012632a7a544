//! The packages of this workspace and their dependencies, as reported by cargo.

use crate::run::{Failure, command};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Deserialize)]
pub struct Metadata {
    pub packages: Vec<Package>,
    pub resolve: Resolve,
    workspace_members: Vec<String>,
}

#[derive(Deserialize)]
pub struct Package {
    pub id: String,
    pub name: String,
    pub version: String,
    pub rust_version: Option<String>,
    pub manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
    /// The registries it may be published to; `None` means any.
    publish: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
pub struct Resolve {
    pub nodes: Vec<Node>,
}

#[derive(Deserialize)]
pub struct Node {
    pub id: String,
    pub deps: Vec<Edge>,
}

#[derive(Deserialize)]
pub struct Edge {
    pub pkg: String,
    pub dep_kinds: Vec<EdgeKind>,
}

#[derive(Deserialize)]
pub struct EdgeKind {
    /// `dev`, `build`, or `None` for a normal dependency.
    pub kind: Option<String>,
}

impl Metadata {
    pub fn load() -> Result<Self, Failure> {
        let arguments = ["metadata", "--format-version", "1", "--locked", "--all-features"];
        let text = command("cargo", &arguments).output(&[0])?;
        serde_json::from_str(&text)
            .map_err(|error| Failure::new(format!("cannot read cargo's metadata: {error}")))
    }

    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    /// The members that are published, each after those it depends on.
    pub fn published(&self) -> Vec<&Package> {
        let mut waiting: Vec<&Package> = self
            .members()
            .filter(|package| package.publish.as_ref().is_none_or(|to| !to.is_empty()))
            .collect();
        let mut ordered = Vec::new();
        while !waiting.is_empty() {
            let names: Vec<String> = waiting.iter().map(|package| package.name.clone()).collect();
            let (ready, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|p| !p.needs_any(&names));
            if ready.is_empty() {
                // Cargo refuses cycles of normal dependencies.
                ordered.extend(rest);
                break;
            }
            ordered.extend(ready);
            waiting = rest;
        }
        ordered
    }
}

impl Package {
    fn needs_any(&self, names: &[String]) -> bool {
        let is_dev = |dependency: &Dependency| dependency.kind.as_deref() == Some("dev");
        self.dependencies.iter().any(|dependency| !is_dev(dependency) && names.contains(&dependency.name))
    }

    /// The name of its library, if it has one.
    pub fn library(&self) -> Option<&str> {
        let is_library = |target: &&Target| target.kind.iter().any(|kind| kind == "lib");
        self.targets.iter().find(is_library).map(|target| target.name.as_str())
    }

    pub fn folder(&self) -> PathBuf {
        self.manifest_path.parent().map(PathBuf::from).unwrap_or_default()
    }
}
