//! The object_store crate, which delta-rs, DataFusion and others stand on. Prints one JSON object per check.
use futures::{stream, StreamExt, TryStreamExt};
use object_store::azure::{MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion, WriteMultipart};
use std::{env, time::Duration};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is missing"))
}

fn builder() -> MicrosoftAzureBuilder {
    MicrosoftAzureBuilder::new()
        .with_account(variable("HOLDFAST_ACCOUNT"))
        .with_container_name(variable("HOLDFAST_CONTAINER"))
        .with_endpoint(variable("HOLDFAST_URL"))
        .with_allow_http(true)
}

fn data(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

fn tell(title: &str, outcome: Outcome) {
    match outcome {
        Ok(()) => println!("{}", serde_json::json!({ "title": title })),
        Err(fault) => println!("{}", serde_json::json!({ "title": title, "fault": fault.to_string() })),
    }
}

#[tokio::main]
async fn main() {
    let store = builder().with_access_key(variable("HOLDFAST_KEY")).build().expect("a store");
    tell("puts and gets 1 MiB", put_and_get(&store).await);
    tell("uploads in blocks", blocks(&store).await);
    tell("writes under conditions", conditions(&store).await);
    tell("copies, and only if absent", copies(&store).await);
    tell("lists, and by folder", list(&store).await);
    tell("reads with a shared access signature", signature(&store).await);
    tell("deletes", delete(&store).await);
    tell("deletes 300 at once", delete_many(&store).await);
}

async fn put_and_get(store: &MicrosoftAzure) -> Outcome {
    for name in ["plain", "a b/ü+%25#😀?&="] {
        let path = Path::from(name);
        store.put(&path, PutPayload::from(data(1 << 20))).await?;
        if store.get(&path).await?.bytes().await? != data(1 << 20) {
            return Err("other bytes came back".into());
        }
        let range = store.get_range(&path, 1000..2000).await?;
        if range != data(1 << 20)[1000..2000] {
            return Err("another range came back".into());
        }
    }
    Ok(())
}

async fn blocks(store: &MicrosoftAzure) -> Outcome {
    let path = Path::from("blocks");
    let mut writer = WriteMultipart::new(store.put_multipart(&path).await?);
    writer.write(&data(12 << 20));
    writer.finish().await?;
    if store.get(&path).await?.bytes().await? != data(12 << 20) {
        return Err("other bytes came back".into());
    }
    Ok(())
}

async fn conditions(store: &MicrosoftAzure) -> Outcome {
    let path = Path::from("conditions");
    let put = |mode: PutMode| store.put_opts(&path, "x".into(), PutOptions::from(mode));
    let first = put(PutMode::Create).await?;
    if !matches!(put(PutMode::Create).await, Err(Error::AlreadyExists { .. })) {
        return Err("it was made twice".into());
    }
    let version = UpdateVersion { e_tag: first.e_tag, version: first.version };
    put(PutMode::Update(version.clone())).await?;
    match put(PutMode::Update(version)).await {
        Err(Error::Precondition { .. }) => Ok(()),
        other => Err(format!("{other:?} instead of a failed precondition").into()),
    }
}

async fn copies(store: &MicrosoftAzure) -> Outcome {
    let (from, to) = (Path::from("plain"), Path::from("copy"));
    store.copy_if_not_exists(&from, &to).await?;
    match store.copy_if_not_exists(&from, &to).await {
        Err(Error::AlreadyExists { .. }) => {}
        other => return Err(format!("{other:?} instead of one that is there").into()),
    }
    store.copy(&from, &to).await?;
    if store.head(&to).await?.size != 1 << 20 {
        return Err("another length".into());
    }
    Ok(())
}

async fn list(store: &MicrosoftAzure) -> Outcome {
    let all: Vec<_> = store.list(None).try_collect().await?;
    if all.len() != 5 {
        return Err(format!("{} blobs", all.len()).into());
    }
    let top = store.list_with_delimiter(None).await?;
    if top.common_prefixes.len() != 1 || top.objects.len() != 4 {
        return Err(format!("{} folders, {} blobs", top.common_prefixes.len(), top.objects.len()).into());
    }
    Ok(())
}

async fn signature(store: &MicrosoftAzure) -> Outcome {
    let path = Path::from("plain");
    let url = store.signed_url(http::Method::GET, &path, Duration::from_secs(3600)).await?;
    let pairs: Vec<_> = url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    let guest = builder().with_sas_authorization(pairs).build()?;
    if guest.get(&path).await?.bytes().await? != data(1 << 20) {
        return Err("other bytes came back".into());
    }
    match guest.put(&path, "x".into()).await {
        Err(Error::PermissionDenied { .. }) => Ok(()),
        other => Err(format!("{other:?} instead of a refusal").into()),
    }
}

async fn delete(store: &MicrosoftAzure) -> Outcome {
    let path = Path::from("plain");
    store.delete(&path).await?;
    match store.head(&path).await {
        Err(Error::NotFound { .. }) => Ok(()),
        other => Err(format!("{other:?} instead of nothing").into()),
    }
}

async fn delete_many(store: &MicrosoftAzure) -> Outcome {
    let paths: Vec<_> = (0..300).map(|at| Path::from(format!("many/a b/ü+%25#{at}"))).collect();
    for path in &paths {
        store.put(path, "x".into()).await?;
    }
    let wanted = stream::iter(paths.clone().into_iter().map(Ok)).boxed();
    let deleted: Vec<_> = store.delete_stream(wanted).try_collect().await?;
    let left: Vec<_> = store.list(Some(&Path::from("many"))).try_collect().await?;
    if deleted != paths || !left.is_empty() {
        return Err(format!("{} deleted, {} left", deleted.len(), left.len()).into());
    }
    Ok(())
}
