//! Microsoft's SDK for Rust, with the account SAS of HOLDFAST_SAS_URL: it knows no account keys. Prints one JSON object per check.
use azure_core::http::{RequestContent, Url};
use azure_storage_blob::models::{
    AccessTier, BlobClientAcquireLeaseResultHeaders, BlobClientCreateSnapshotResultHeaders, BlobClientDownloadOptions,
    BlobClientGetPropertiesResultHeaders, BlobContainerClientListBlobsOptions, BlockBlobClientUploadOptions, BlockListType,
    BlockLookupList, HttpRange,
};
use azure_storage_blob::{BlobClient, BlobContainerClient, BlobServiceClient, StorageError};
use futures::{Future, TryStreamExt};
use std::collections::HashMap;
use std::num::NonZero;
use std::time::{SystemTime, UNIX_EPOCH};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const ODD_NAME: &str = "a b/ü+%25#😀?&=";

fn data(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

fn content(bytes: Vec<u8>) -> RequestContent<azure_core::Bytes, azure_core::http::NoFormat> {
    RequestContent::from(bytes)
}

fn pair(name: &str, value: &str) -> HashMap<String, String> {
    HashMap::from([(name.to_string(), value.to_string())])
}

fn expect<T: PartialEq + std::fmt::Debug>(seen: T, expected: T) -> Outcome {
    if seen == expected { Ok(()) } else { Err(format!("{seen:?} instead of {expected:?}").into()) }
}

async fn refused<T>(code: &str, call: impl Future<Output = azure_core::Result<T>>) -> Outcome {
    let Err(error) = call.await else { return Err(format!("accepted instead of {code}").into()) };
    let error: StorageError = error.try_into()?;
    expect(error.error_code.map(|each| each.as_ref().to_string()), Some(code.to_string()))
}

async fn holds(blob: &BlobClient, expected: &[u8]) -> Outcome {
    match blob.download(None).await?.body.collect().await? == expected {
        true => Ok(()),
        false => Err("other bytes came back".into()),
    }
}

fn tell(title: &str, outcome: Outcome) {
    match outcome {
        Ok(()) => println!("{}", serde_json::json!({ "title": title })),
        Err(fault) => println!("{}", serde_json::json!({ "title": title, "fault": fault.to_string() })),
    }
}

#[tokio::main]
async fn main() -> Outcome {
    let url = Url::parse(&std::env::var("HOLDFAST_SAS_URL")?)?;
    let service = BlobServiceClient::new(url, None, None)?;
    let name = format!("rust-{}", SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos());
    let container = service.blob_container_client(&name);
    tell("creates a container, once", create(&container).await);
    tell("puts and gets 1 MiB", put_and_get(&container).await);
    tell("uploads in blocks and downloads in ranges", ranges(&container).await);
    tell("commits a list of blocks", blocks(&container).await);
    tell("writes under conditions", conditions(&container).await);
    tell("is kept out by a lease", leases(&container).await);
    tell("lists, and from a name on", list(&container).await);
    tell("sets metadata and tiers", properties(&container).await);
    tell("sets tags and finds by them", tags(&container).await);
    tell("copies", copies(&container).await);
    tell("writes blobs and blocks from addresses", from_url(&container).await);
    tell("reads a snapshot", snapshots(&container).await);
    tell("appends", append(&container).await);
    tell("writes pages", pages(&container).await);
    tell("deletes", delete(&container).await);
    Ok(())
}

async fn create(container: &BlobContainerClient) -> Outcome {
    container.create(None).await?;
    refused("ContainerAlreadyExists", container.create(None)).await?;
    expect(container.exists().await?, true)
}

async fn put_and_get(container: &BlobContainerClient) -> Outcome {
    for name in ["plain", ODD_NAME] {
        let blob = container.blob_client(name);
        blob.upload(content(data(1 << 20)), None).await?;
        holds(&blob, &data(1 << 20)).await?;
    }
    Ok(())
}

async fn ranges(container: &BlobContainerClient) -> Outcome {
    let blob = container.blob_client("large");
    let upload = BlockBlobClientUploadOptions {
        partition_size: NonZero::new(1 << 20),
        parallel: NonZero::new(4),
        ..Default::default()
    };
    blob.upload(content(data(5 << 20)), Some(upload)).await?;
    let listed = blob.block_blob_client().get_block_list(BlockListType::Committed, None).await?.into_model()?;
    expect(listed.committed_blocks.map(|blocks| blocks.len()), Some(5))?;
    let download = BlobClientDownloadOptions { partition_size: NonZero::new(700_000), ..Default::default() };
    let seen = blob.download(Some(download)).await?.body.collect().await?;
    expect(seen == data(5 << 20), true)
}

async fn blocks(container: &BlobContainerClient) -> Outcome {
    let blob = container.blob_client("blocks");
    let client = blob.block_blob_client();
    let ids: Vec<Vec<u8>> = ["one", "two"].iter().map(|id| id.as_bytes().to_vec()).collect();
    for id in &ids {
        client.stage_block(id, 3, content(id.clone()), None).await?;
    }
    let list = BlockLookupList { latest: Some(ids), ..Default::default() };
    client.commit_block_list(list.try_into()?, None).await?;
    holds(&blob, b"onetwo").await
}

async fn conditions(container: &BlobContainerClient) -> Outcome {
    let blob = container.blob_client("conditions");
    let once = || Some(BlockBlobClientUploadOptions::default().if_not_exists());
    blob.upload(content(data(1)), once()).await?;
    refused("BlobAlreadyExists", blob.upload(content(data(1)), once())).await?;
    let etag = blob.get_properties(None).await?.etag()?;
    let unchanged = || Some(BlockBlobClientUploadOptions { if_match: etag.clone(), ..Default::default() });
    blob.upload(content(data(2)), unchanged()).await?;
    refused("ConditionNotMet", blob.upload(content(data(3)), unchanged())).await
}

async fn leases(container: &BlobContainerClient) -> Outcome {
    let blob = container.blob_client("conditions");
    let id = blob.acquire_lease(15, None).await?.lease_id()?.ok_or("no lease id")?;
    refused("LeaseIdMissing", blob.delete(None)).await?;
    blob.renew_lease(id.clone(), None).await?;
    blob.release_lease(id, None).await?;
    Ok(())
}

async fn list(container: &BlobContainerClient) -> Outcome {
    let names = |options| async {
        let found: Vec<_> = container.list_blobs(Some(options))?.try_collect().await?;
        Ok::<_, azure_core::Error>(found.into_iter().filter_map(|blob| blob.name).collect::<Vec<_>>())
    };
    let pages = BlobContainerClientListBlobsOptions { maxresults: Some(2), ..Default::default() };
    expect(names(pages).await?, [ODD_NAME, "blocks", "conditions", "large", "plain"].map(String::from).to_vec())?;
    let rest = BlobContainerClientListBlobsOptions { start_from: Some("large".into()), ..Default::default() };
    expect(names(rest).await?, ["large", "plain"].map(String::from).to_vec())
}

async fn properties(container: &BlobContainerClient) -> Outcome {
    let blob = container.blob_client("plain");
    blob.set_metadata(&pair("by", "rust"), None).await?;
    blob.set_tier(AccessTier::Cool, None).await?;
    let found = blob.get_properties(None).await?;
    expect(found.metadata()?, pair("by", "rust"))?;
    expect(found.access_tier()?.map(|tier| tier.to_string()), Some("Cool".to_string()))
}

async fn tags(container: &BlobContainerClient) -> Outcome {
    let blob = container.blob_client("tagged");
    let options = BlockBlobClientUploadOptions::default().with_tags(pair("by", "rust"));
    blob.upload(content(data(1)), Some(options)).await?;
    let found: Vec<_> = container.find_blobs_by_tags("\"by\"='rust'", None)?.try_collect().await?;
    expect(found.into_iter().filter_map(|each| each.name).collect::<Vec<_>>(), vec!["tagged".to_string()])?;
    blob.delete(None).await?;
    Ok(())
}

async fn copies(container: &BlobContainerClient) -> Outcome {
    let blob = container.blob_client("copy");
    blob.start_copy_from_url(container.blob_client(ODD_NAME).url().to_string(), None).await?;
    holds(&blob, &data(1 << 20)).await
}

async fn from_url(container: &BlobContainerClient) -> Outcome {
    let source = container.blob_client(ODD_NAME).url().to_string();
    let blob = container.blob_client("from url");
    let client = blob.block_blob_client();
    client.upload_blob_from_url(source.clone(), None).await?;
    holds(&blob, &data(1 << 20)).await?;
    client.stage_block_from_url(b"one", 0, source, None).await?;
    let list = BlockLookupList { latest: Some(vec![b"one".to_vec()]), ..Default::default() };
    client.commit_block_list(list.try_into()?, None).await?;
    holds(&blob, &data(1 << 20)).await
}

async fn snapshots(container: &BlobContainerClient) -> Outcome {
    let blob = container.blob_client("snapshots");
    blob.upload(content(data(10)), None).await?;
    let snapshot = blob.create_snapshot(None).await?.snapshot()?.ok_or("no snapshot")?;
    blob.upload(content(data(20)), None).await?;
    holds(&blob.with_snapshot(&snapshot)?, &data(10)).await
}

async fn append(container: &BlobContainerClient) -> Outcome {
    let blob = container.blob_client("append");
    let client = blob.append_blob_client();
    client.create(None).await?;
    client.append_block(content(data(10)), 10, None).await?;
    client.append_block(content(data(10)), 10, None).await?;
    holds(&blob, &[data(10), data(10)].concat()).await
}

async fn pages(container: &BlobContainerClient) -> Outcome {
    let blob = container.blob_client("pages");
    let client = blob.page_blob_client();
    client.create(1024, None).await?;
    client.upload_pages(content(data(512)), 512, HttpRange::new(512, 512), None).await?;
    holds(&blob, &[vec![0; 512], data(512)].concat()).await
}

async fn delete(container: &BlobContainerClient) -> Outcome {
    let blob = container.blob_client("plain");
    blob.delete(None).await?;
    refused("BlobNotFound", blob.download(None)).await?;
    container.delete(None).await?;
    Ok(())
}
