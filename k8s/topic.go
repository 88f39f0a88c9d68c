// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// TopicConfigMap is the name of the ConfigMap in the service's namespace that holds the topic of the installation. The
// leader writes it, and all replicas watch it.
const TopicConfigMap = "rds-autopilot-topic"

// cacheWait is two seconds because a watch usually shows a write within milliseconds.
const cacheWait = 2 * time.Second

// The keys of the ConfigMap.
const (
	topicURN             = "topicURN"
	topicSubscriptionURN = "subscriptionURN"
	topicURL             = "url"
	topicState           = "subscription"
	topicMessage         = "message"
	topicRequestedTime   = "requestedTime"
)

// topicClient reads only that ConfigMap, because the service has no right to read others.
type topicClient struct {
	corev1client.ConfigMapInterface
}

func (t topicClient) List(ctx context.Context, opts metav1.ListOptions) (*corev1.ConfigMapList, error) {
	opts.FieldSelector = "metadata.name=" + TopicConfigMap
	return t.ConfigMapInterface.List(ctx, opts)
}

func (t topicClient) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.FieldSelector = "metadata.name=" + TopicConfigMap
	return t.ConfigMapInterface.Watch(ctx, opts)
}

// Topic returns the topic of the installation from the cache. It is empty if there is none.
func (c *Cluster) Topic() autopilotv1.Topic {
	found, _ := c.topic.get(c.own, TopicConfigMap)
	return topicOf(found)
}

// OnTopic registers f for the ConfigMap of the topic. f gets an empty topic if the ConfigMap is deleted.
func (c *Cluster) OnTopic(f func(autopilotv1.Topic)) error {
	synced, err := addHandler(c.topic, []string{c.own}, func(_, now *corev1.ConfigMap) { f(topicOf(now)) })
	c.synced = append(c.synced, synced...)
	return err
}

// LiveTopic reads the topic of the installation from the API server. It is empty if there is none.
func (c *Cluster) LiveTopic(ctx context.Context) (autopilotv1.Topic, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found, err := c.core.ConfigMaps(c.own).Get(ctx, TopicConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return autopilotv1.Topic{}, nil
	}
	return topicOf(found), wrapError(err, "get ConfigMap %s/%s", c.own, TopicConfigMap)
}

func topicOf(m *corev1.ConfigMap) autopilotv1.Topic {
	if m == nil {
		return autopilotv1.Topic{}
	}
	t := autopilotv1.Topic{
		URN: m.Data[topicURN], SubscriptionURN: m.Data[topicSubscriptionURN], URL: m.Data[topicURL],
		State: autopilotv1.SubscriptionState(m.Data[topicState]), Message: m.Data[topicMessage],
	}
	if at, err := time.Parse(time.RFC3339, m.Data[topicRequestedTime]); err == nil {
		t.RequestedTime = &metav1.Time{Time: at}
	}
	return t
}

// WriteTopic stores the topic of the installation, and deletes the ConfigMap if there is no topic. It returns once our
// cache has it, at most after cacheWait, because SMN repeats a confirmation that a receiver cannot place only after a
// minute.
func (c *Cluster) WriteTopic(ctx context.Context, t autopilotv1.Topic) error {
	if err := c.writeTopic(ctx, t); err != nil {
		return err
	}
	for end := time.Now().Add(cacheWait); c.Topic().URN != t.URN && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(syncInterval)
	}
	return nil
}

func (c *Cluster) writeTopic(ctx context.Context, t autopilotv1.Topic) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client := c.core.ConfigMaps(c.own)
	if t == (autopilotv1.Topic{}) {
		err := client.Delete(ctx, TopicConfigMap, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return wrapError(err, "delete ConfigMap %s/%s", c.own, TopicConfigMap)
	}
	data := map[string]string{topicURN: t.URN, topicSubscriptionURN: t.SubscriptionURN, topicURL: t.URL,
		topicState: string(t.State), topicMessage: t.Message, topicRequestedTime: ""}
	if t.RequestedTime != nil {
		data[topicRequestedTime] = t.RequestedTime.UTC().Format(time.RFC3339)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: TopicConfigMap, Labels: c.labels}, Data: data}
	patch, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encode ConfigMap %s/%s: %w", c.own, TopicConfigMap, err)
	}
	_, err = client.Patch(ctx, TopicConfigMap, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: self})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, object, metav1.CreateOptions{FieldManager: self})
	}
	return wrapError(err, "write ConfigMap %s/%s", c.own, TopicConfigMap)
}

// TopicEvent emits an event on the ConfigMap of the topic.
func (c *Cluster) TopicEvent(e autopilot.Event) {
	ref := corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: c.own, Name: TopicConfigMap}
	if m, ok := c.topic.get(c.own, TopicConfigMap); ok {
		ref.UID = m.UID
	}
	c.event(ref, e)
}

// IsWatched reports whether this installation watches a namespace.
func (c *Cluster) IsWatched(namespace string) bool {
	return c.namespaces[0] == metav1.NamespaceAll || slices.Contains(c.namespaces, namespace)
}
